import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { isTerminal } from "../../../src/model/states.ts";
import { api } from "../../data/client.ts";
import { type QueuedMessage, useMessageQueue } from "../../data/message-queue.ts";
import { type Agent, queries, queryClient } from "../../data/queries.ts";
import { useRunEvents } from "../../data/run-events.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { RunForm } from "../../parts/run-form.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { draftKey, useDraft } from "./draft.ts";
import { Message } from "./message.tsx";
import { Queue } from "./queue.tsx";
import { sendInput, countFinishedSteps, useDelivery } from "./use-delivery.ts";
import styles from "./composer.module.css";

interface Props {
  agent: Agent;
  session_id: string | null;
  /** The conversation's newest run. */
  last: string | null;
  /** If set, the next message forks the conversation after this many turns. */
  fork: number | null;
}

/** Starts or continues a conversation. Queues messages while a run is active. */
export function Composer(props: Props) {
  const { agent, session_id } = props;
  const asksForParameters =
    agent.type === "procedural" || (session_id === null && required(agent.parameters_schema).length > 0);
  if (asksForParameters) return <ParameterForm agent={agent} session_id={session_id} />;
  const draft = draftKey(agent.name, session_id, props.fork);
  return <MessageComposer key={draft} draft={draft} {...props} />;
}

function ParameterForm({ agent, session_id }: Pick<Props, "agent" | "session_id">) {
  const navigate = useNavigate();
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
            <span className="faint ellipsis">{agent.command ? `Runs ${agent.command}` : ""}</span>
            <Button look="primary" icon="runs" type="submit" disabled={sending}>
              Run
            </Button>
          </div>
        )}
      </RunForm>
    </div>
  );
}

function MessageComposer({ agent, session_id, last, fork, draft }: Props & { draft: string }) {
  const [text, setText] = useDraft(draft);
  const run = useQuery({ ...queries.run(last ?? ""), enabled: last !== null }).data;
  const log = useRunEvents(session_id === null ? null : last);
  const runners = useQuery(queries.runners()).data;
  const queue = useMessageQueue(session_id);
  const navigate = useNavigate();
  const busy = run !== undefined && !isTerminal(run.status) && session_id !== null;
  const takesInput = runners?.find(({ runner_id }) => runner_id === run?.runner_id)?.executor.can?.input === true;
  const submit = async (prompt: string, more: Partial<Parameters<typeof api.submit>[0]>): Promise<void> => {
    const made = await api.submit({ agent_name: agent.name, prompt, attended: true, ...more });
    refresh();
    if (made.session_id && made.session_id !== session_id)
      await navigate({ to: "/chat", search: { session: made.session_id } });
  };
  const resume = session_id === null ? {} : ({ mode: "resume", session_id } as const);
  useDelivery({
    queue,
    run,
    log,
    takesInput,
    startTurn: (message, idempotency_key) => submit(message, { ...resume, idempotency_key }),
  });
  const sendNow = (message: QueuedMessage): void =>
    void (async () => {
      if (!busy) await submit(message.text, { ...resume, idempotency_key: message.id });
      else if (!(await sendInput(run.run_id, message.text)))
        return toast("Message queued", "The run cannot take it right now.");
      if (busy) queue.markSent(message.id);
      else queue.remove(message.id);
    })().catch(toastError);
  const withdraw = (message: QueuedMessage): void => {
    queue.remove(message.id);
    // Put the text back into the composer.
    if (text === "") setText(message.text);
  };
  const stop = (): void => void api.runs.stop(run!.run_id).then(() => toast("Stopping"), toastError);
  return (
    <div className={styles["composer"]}>
      {fork === null ? null : (
        <p className={styles["fork"]}>
          <Icon name="fork" />
          <span className="grow">
            Your message starts a copy of this conversation after {fork === 1 ? "its first turn" : `${fork} turns`}.
            This conversation stays unchanged.
          </span>
          <IconButton
            icon="bad"
            label="Cancel fork"
            onClick={() => void navigate({ to: "/chat", search: session_id ? { session: session_id } : {} })}
          />
        </p>
      )}
      <Queue
        messages={queue.messages}
        when={
          busy ? (takesInput ? "sent after this step" : "sent as the next turn") : "not sent: the run did not complete"
        }
        sendNow={busy && !takesInput ? null : sendNow}
        withdraw={withdraw}
      />
      <Message
        text={text}
        setText={setText}
        placeholder={
          fork !== null
            ? "Continue differently"
            : busy
              ? "The agent is working. Messages are queued."
              : `Message ${agent.name}`
        }
        word={fork !== null ? "Fork" : busy ? "Queue" : "Send"}
        send={async () => {
          if (fork !== null && session_id !== null)
            await submit(text, { mode: "fork", session_id, fork_at_turn: fork });
          else if (busy) queue.add(text, countFinishedSteps(log.activity));
          else await submit(text, resume);
        }}
        fork={fork === null && session_id !== null && !busy ? () => submit(text, { mode: "fork", session_id }) : null}
        stop={busy ? stop : null}
      />
    </div>
  );
}

function refresh(): void {
  for (const key of ["runs", "session"]) void queryClient.invalidateQueries({ queryKey: [key] });
}

function required(schema: Agent["parameters_schema"]): readonly unknown[] {
  const names = schema?.["required"];
  return Array.isArray(names) ? names : [];
}
