import { randomUUID } from "node:crypto";
import { RequestError } from "../../model/errors.ts";
import type { StoredEvent } from "../../model/event.ts";
import type { Decision, Delta } from "../../model/executor.ts";
import type { Run } from "../../model/run.ts";
import type { ApiClient, FlatAgent, Submission } from "../../wire/client.ts";
import { withRetries } from "../with-retries.ts";

export interface ConversationOptions {
  agent: FlatAgent;
  attended: boolean;
  project_dir?: string | undefined;
  parameters: Record<string, unknown>;
  /** The run that this command is part of. */
  parent_run_id?: string | undefined;
}

export interface TurnWatch {
  onStart(run: Run): void;
  onEvent(stored: StoredEvent): void;
  onPartial(delta: Delta): void;
}

/** One conversation with an agent: each message is a run that resumes its session, or input to the run at work. */
export interface Conversation {
  readonly session_id: string | null;
  readonly run_id: string | null;
  /** For the runs to come; null: the agent's own. */
  model: string | null;
  /** Says something, and is there until the agent has answered. */
  turn(text: string, watch: TurnWatch): Promise<Run>;
  /** To the run at work; false where it does not take any. */
  tell(text: string): Promise<boolean>;
  stop(): Promise<void>;
  answer(run_id: string, request_id: string, decision: Decision): Promise<unknown>;
  /** The next message begins a new session. */
  begin(): void;
  /** The next message continues this one. */
  resume(session_id: string): void;
  /** The next message goes to a copy of the session, or of its first turns. */
  fork(turns?: number): void;
}

export function createConversation(client: ApiClient, options: ConversationOptions): Conversation {
  let session_id: string | null = null;
  let from: Pick<Submission, "mode" | "session_id" | "fork_at_turn"> = {};
  let run_id: string | null = null;
  let isStopping = false;

  function request(text: string): Submission {
    const { agent, attended, project_dir, parameters, parent_run_id } = options;
    return {
      agent_name: agent.name,
      ...from,
      prompt: text,
      parameters,
      attended,
      trigger_type: "chat",
      ...(conversation.model === null ? {} : { model: conversation.model }),
      // the session works where it began
      ...(from.mode === undefined && project_dir !== undefined ? { project_dir } : {}),
      ...(parent_run_id === undefined ? {} : { parent_run_id }),
      idempotency_key: randomUUID(),
    };
  }

  const conversation: Conversation = {
    model: null,
    get session_id() {
      return session_id;
    },
    get run_id() {
      return run_id;
    },
    async turn(text, watch) {
      const asked = request(text);
      isStopping = false;
      const run = await withRetries(() => client.submit(asked));
      run_id = run.run_id;
      try {
        watch.onStart(run);
        if (isStopping) await client.runs.stop(run.run_id);
        let hasBegun = from.mode !== undefined;
        for await (const stored of client.runs.follow(run.run_id, { onPartial: watch.onPartial })) {
          const { event } = stored;
          if (event.type === "system" && event.executor_session_id) hasBegun = true;
          watch.onEvent(stored);
        }
        // a run that ended before there was a conversation leaves nothing to resume
        session_id = hasBegun ? run.session_id : session_id;
        if (hasBegun && run.session_id) from = { mode: "resume", session_id: run.session_id };
        return await withRetries(() => client.runs.get(run.run_id));
      } finally {
        run_id = null;
      }
    },
    async tell(text) {
      if (run_id === null) return false;
      try {
        await client.runs.input(run_id, text);
        return true;
      } catch (error) {
        // it has just ended, or its executor reads no messages while it works
        if (error instanceof RequestError) return false;
        throw error;
      }
    },
    async stop() {
      isStopping = true;
      const id = run_id;
      if (id !== null) await withRetries(() => client.runs.stop(id));
    },
    answer: (run, question, decision) => client.questions.answer(run, question, decision),
    begin() {
      session_id = null;
      from = {};
    },
    resume(id) {
      session_id = id;
      from = { mode: "resume", session_id: id };
    },
    fork(turns) {
      if (session_id !== null)
        from = { mode: "fork", session_id, ...(turns === undefined ? {} : { fork_at_turn: turns }) };
    },
  };
  return conversation;
}
