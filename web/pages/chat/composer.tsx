import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { RequestError } from "../../../src/model/errors.ts";
import { isTerminal } from "../../../src/model/states.ts";
import { api } from "../../data/client.ts";
import { type Agent, queries, queryClient } from "../../data/queries.ts";
import { Button } from "../../parts/button.tsx";
import { RunForm } from "../../parts/run-form.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import styles from "./composer.module.css";

/** Starts or continues the conversation; while a run is at work, a message is handed to it. */
export function Composer({
  agent,
  session_id,
  last,
}: {
  agent: Agent;
  session_id: string | null;
  last: string | null;
}) {
  const run = useQuery({ ...queries.run(last ?? ""), enabled: last !== null }).data;
  const busy = run !== undefined && !isTerminal(run.status) && session_id !== null;
  const navigate = useNavigate();
  const refresh = (): void => {
    for (const key of ["runs", "session"]) void queryClient.invalidateQueries({ queryKey: [key] });
  };
  if (agent.type === "procedural" || (session_id === null && asksForParameters(agent)))
    return (
      <div className={styles["composer"]}>
        <RunForm
          agent={agent}
          onStarted={(made) => {
            refresh();
            if (agent.type === "autonomous" && made.session_id)
              void navigate({ to: "/chat", search: { session: made.session_id } });
            else if (session_id !== null) void navigate({ to: "/chat", search: { agent: agent.name } });
          }}
        >
          {(sending) => (
            <div className={styles["foot"]}>
              <span className="faint">{agent.command ? `Runs ${agent.command}` : ""}</span>
              <Button look="primary" icon="runs" type="submit" disabled={sending}>
                Run
              </Button>
            </div>
          )}
        </RunForm>
      </div>
    );
  const send = async (text: string): Promise<void> => {
    if (busy && (await handOver(run.run_id, text))) return toast("Sent", "The agent reads it when it can.");
    const made = await api.submit({
      agent_name: agent.name,
      prompt: text,
      attended: true,
      ...(session_id === null ? {} : { mode: "resume", session_id }),
    });
    refresh();
    if (made.session_id) await navigate({ to: "/chat", search: { session: made.session_id } });
  };
  return (
    <Message
      draftKey={`drover.draft.${session_id ?? agent.name}`}
      placeholder={busy ? "It is at work; a message waits for its next turn" : `Message ${agent.name}`}
      send={send}
      stop={busy ? () => void api.runs.stop(run.run_id).then(() => toast("Stopping"), toastError) : null}
      fork={
        session_id !== null && !busy
          ? async (text) => {
              const made = await api.submit({
                agent_name: agent.name,
                prompt: text,
                attended: true,
                mode: "fork",
                session_id,
              });
              refresh();
              if (made.session_id) await navigate({ to: "/chat", search: { session: made.session_id } });
            }
          : null
      }
    />
  );
}

/** False where the run has ended meanwhile: then the message starts the next one. */
async function handOver(run_id: string, text: string): Promise<boolean> {
  try {
    await api.runs.input(run_id, text);
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.code === "DROVER-API-030") return false;
    throw error;
  }
}

function asksForParameters({ parameters_schema }: Agent): boolean {
  const required = parameters_schema?.["required"];
  return Array.isArray(required) && required.length > 0;
}

/** Its draft is kept, so that a reload loses nothing. */
function Message({
  draftKey,
  placeholder,
  send,
  stop,
  fork,
}: {
  draftKey: string;
  placeholder: string;
  send: (text: string) => Promise<void>;
  stop: (() => void) | null;
  fork: ((text: string) => Promise<void>) | null;
}) {
  const [text, setText] = useState(() => localStorage.getItem(draftKey) ?? "");
  const [sending, setSending] = useState(false);
  const change = (next: string): void => {
    setText(next);
    if (next === "") localStorage.removeItem(draftKey);
    else localStorage.setItem(draftKey, next);
  };
  const go = (how: (text: string) => Promise<void>): void => {
    if (text.trim() === "" || sending) return;
    setSending(true);
    how(text)
      .then(() => change(""), toastError)
      .finally(() => setSending(false));
  };
  return (
    <div className={styles["composer"]}>
      <textarea
        rows={3}
        aria-label="Message"
        placeholder={placeholder}
        value={text}
        onChange={(event) => change(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          go(send);
        }}
      />
      <div className={styles["foot"]}>
        <span className="faint">
          <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> starts a line
        </span>
        {fork ? (
          <Button
            icon="fork"
            disabled={sending}
            onClick={() => go(fork)}
            title="Answers in a copy of this conversation"
          >
            Fork
          </Button>
        ) : null}
        {stop ? (
          <Button look="bad" icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : null}
        <Button look="primary" icon="send" disabled={sending} onClick={() => go(send)}>
          Send
        </Button>
      </div>
    </div>
  );
}
