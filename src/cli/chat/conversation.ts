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
  /** The run that this chat is part of. */
  parent_run_id?: string | undefined;
}

export interface TurnObserver {
  onStart(run: Run): void;
  onEvent(stored: StoredEvent): void;
  onPartial(delta: Delta): void;
}

/** A conversation with an agent. Each message is a run that resumes the session, or input to the active run. */
export interface Conversation {
  readonly session_id: string | null;
  readonly run_id: string | null;
  /** The model for the next runs. null means the agent's own model. */
  model: string | null;
  /** Sends a message and waits for the agent's answer. */
  runTurn(text: string, observer: TurnObserver): Promise<Run>;
  /** Sends a message to the active run. Returns false if the run does not accept it. */
  sendInput(text: string): Promise<boolean>;
  stop(): Promise<void>;
  answer(run_id: string, request_id: string, decision: Decision): Promise<unknown>;
  /** Makes the next message start a new session. */
  startNew(): void;
  /** Makes the next message continue this session. */
  resume(session_id: string): void;
  /** Makes the next message continue a copy of the session, or of its first turns. */
  fork(turns?: number): void;
}

export function createConversation(client: ApiClient, options: ConversationOptions): Conversation {
  let session_id: string | null = null;
  let sessionStart: Pick<Submission, "mode" | "session_id" | "fork_at_turn"> = {};
  let run_id: string | null = null;
  let isStopping = false;

  function createSubmission(text: string): Submission {
    const { agent, attended, project_dir, parameters, parent_run_id } = options;
    return {
      agent_name: agent.name,
      ...sessionStart,
      prompt: text,
      parameters,
      attended,
      trigger_type: "chat",
      ...(conversation.model === null ? {} : { model: conversation.model }),
      // A resumed session keeps its working directory.
      ...(sessionStart.mode === undefined && project_dir !== undefined ? { project_dir } : {}),
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
    async runTurn(text, observer) {
      const submission = createSubmission(text);
      isStopping = false;
      const run = await withRetries(() => client.submit(submission));
      run_id = run.run_id;
      try {
        observer.onStart(run);
        if (isStopping) await client.runs.stop(run.run_id);
        let hasSession = sessionStart.mode !== undefined;
        for await (const stored of client.runs.follow(run.run_id, { onPartial: observer.onPartial })) {
          const { event } = stored;
          if (event.type === "system" && event.executor_session_id) hasSession = true;
          observer.onEvent(stored);
        }
        // A run that ended before its executor had a session leaves nothing to resume.
        session_id = hasSession ? run.session_id : session_id;
        if (hasSession && run.session_id) sessionStart = { mode: "resume", session_id: run.session_id };
        return await withRetries(() => client.runs.get(run.run_id));
      } finally {
        run_id = null;
      }
    },
    async sendInput(text) {
      if (run_id === null) return false;
      try {
        await client.runs.input(run_id, text);
        return true;
      } catch (error) {
        // The run has ended in the meantime, or its executor does not read input.
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
    startNew() {
      session_id = null;
      sessionStart = {};
    },
    resume(id) {
      session_id = id;
      sessionStart = { mode: "resume", session_id: id };
    },
    fork(turns) {
      if (session_id !== null)
        sessionStart = { mode: "fork", session_id, ...(turns === undefined ? {} : { fork_at_turn: turns }) };
    },
  };
  return conversation;
}
