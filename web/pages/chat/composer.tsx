import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { hasEnded } from "../../../src/model/states.ts";
import { api } from "../../data/client.ts";
import { type QueuedMessage, useMessageQueue } from "../../data/message-queue.ts";
import { type Agent, queries, queryClient } from "../../data/queries.ts";
import { useRunEvents } from "../../data/run-events.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { RunForm } from "../../parts/run-form.tsx";
import { toast, toastError } from "../../parts/toasts.tsx";
import { getDraftKey, loadDraft, removeSentText, saveDraft, useDraft } from "./draft.ts";
import { MessageInput } from "./message-input.tsx";
import { Queue } from "./queue.tsx";
import { sendInput, countFinishedSteps, useQueueSender } from "./use-queue-sender.ts";
import styles from "./composer.module.css";

interface Props {
  agent: Agent;
  session_id: string | null;
  /** The conversation's newest run. */
  lastRunId: string | null;
  /** If set, the next message forks the conversation after this many turns. */
  fork: number | null;
}

/** Starts or continues a conversation. Queues messages while a run is active. */
export function Composer(props: Props) {
  const { agent, session_id } = props;
  const needsParameters =
    agent.type === "procedural" || (session_id === null && listRequiredParameters(agent.parameters_schema).length > 0);
  if (needsParameters) return <ParameterForm agent={agent} session_id={session_id} />;
  const draft = getDraftKey(agent.name, session_id, props.fork);
  return <MessageComposer key={draft} draft={draft} {...props} />;
}

function ParameterForm({ agent, session_id }: Pick<Props, "agent" | "session_id">) {
  const navigate = useNavigate();
  return (
    <div className={styles["composer"]}>
      <RunForm
        agent={agent}
        trigger="chat"
        onStarted={(run) => {
          refresh();
          if (agent.type === "autonomous" && run.session_id)
            void navigate({ to: "/chat", search: { session: run.session_id } });
          else if (session_id !== null) void navigate({ to: "/chat", search: { agent: agent.name } });
        }}
      >
        {(sending) => (
          <div className={styles["foot"]}>
            <span className="faint ellipsis">{agent.command ? `Runs ${agent.command}` : ""}</span>
            <Button variant="primary" icon="runs" type="submit" disabled={sending}>
              Run
            </Button>
          </div>
        )}
      </RunForm>
    </div>
  );
}

function MessageComposer({ agent, session_id, lastRunId, fork, draft }: Props & { draft: string }) {
  const [text, setText] = useDraft(draft);
  const run = useQuery({ ...queries.run(lastRunId ?? ""), enabled: lastRunId !== null }).data;
  const log = useRunEvents(session_id === null ? null : lastRunId);
  const runners = useQuery(queries.runners()).data;
  const queue = useMessageQueue(session_id);
  const navigate = useNavigate();
  const isActive = run !== undefined && !hasEnded(run.status) && session_id !== null;
  const takesInput = runners?.find(({ runner_id }) => runner_id === run?.runner_id)?.executor.can?.input === true;
  const submit = async (prompt: string, options: Partial<Parameters<typeof api.submit>[0]>): Promise<void> => {
    const created = await api.submit({
      agent_name: agent.name,
      prompt,
      trigger_type: "chat",
      attended: true,
      ...options,
    });
    refresh();
    if (created.session_id && created.session_id !== session_id) {
      // Text that was typed during the request belongs to the conversation that is shown next.
      saveDraft(getDraftKey(agent.name, created.session_id, null), removeSentText(loadDraft(draft), prompt));
      saveDraft(draft, "");
      await navigate({ to: "/chat", search: { session: created.session_id } });
    }
  };
  const resumeOptions = session_id === null ? {} : ({ mode: "resume", session_id } as const);
  useQueueSender({
    queue,
    run,
    log,
    takesInput,
    startTurn: (message, idempotency_key) => submit(message, { ...resumeOptions, idempotency_key }),
  });
  const sendNow = (message: QueuedMessage): void =>
    void (async () => {
      if (!isActive) await submit(message.text, { ...resumeOptions, idempotency_key: message.id });
      else if (!(await sendInput(run.run_id, message.text)))
        return toast("Message queued", "The run cannot accept it right now.");
      if (isActive) queue.markSent(message.id);
      else queue.remove(message.id);
    })().catch(toastError);
  const withdraw = (message: QueuedMessage): void => {
    queue.remove(message.id);
    // Let the user edit the text in the composer.
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
            icon="close"
            label="Cancel fork"
            onClick={() => void navigate({ to: "/chat", search: session_id ? { session: session_id } : {} })}
          />
        </p>
      )}
      <Queue
        messages={queue.messages}
        getStatusLabel={
          isActive
            ? takesInput
              ? "sent after this step"
              : "sent as the next turn"
            : "not sent: the run did not complete"
        }
        sendNow={isActive && !takesInput ? null : sendNow}
        withdraw={withdraw}
      />
      <MessageInput
        text={text}
        setText={setText}
        removeSent={(sent) => setText(removeSentText(loadDraft(draft), sent))}
        placeholder={
          fork !== null
            ? "Continue differently"
            : isActive
              ? "The agent is working. Messages are queued."
              : `Message ${agent.name}`
        }
        sendLabel={fork !== null ? "Fork" : isActive ? "Queue" : "Send"}
        send={async () => {
          if (fork !== null && session_id !== null)
            await submit(text, { mode: "fork", session_id, fork_at_turn: fork });
          else if (isActive) queue.add(text, countFinishedSteps(log.activity));
          else await submit(text, resumeOptions);
        }}
        fork={
          fork === null && session_id !== null && !isActive ? () => submit(text, { mode: "fork", session_id }) : null
        }
        stop={isActive ? stop : null}
      />
    </div>
  );
}

function refresh(): void {
  for (const key of ["runs", "session"]) void queryClient.invalidateQueries({ queryKey: [key] });
}

function listRequiredParameters(schema: Agent["parameters_schema"]): readonly unknown[] {
  const names = schema?.["required"];
  return Array.isArray(names) ? names : [];
}
