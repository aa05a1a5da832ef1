import { Inbox } from "../../../llm/claude-code/inbox.ts";
import type { AgentSdk, Query, SpawnRequest } from "../../../llm/claude-code/sdk.ts";
import { SdkProcess } from "../../../llm/claude-code/sdk-process.ts";
import { createStderrExcerpt } from "../../executions/stderr-excerpt.ts";
import type { Job } from "../../scaffold/define-executor.ts";
import { type Fields, fieldsOf, listOf, numberOf } from "../clients/fields.ts";
import { exitGraceMs } from "../clients/exit-grace.ts";

/** A message from the user. `uuid` identifies it in the transcript. */
export interface Prompt {
  text: string;
  uuid?: string;
}

/** One Claude Code process, from its first message to its exit. */
export interface LiveQuery {
  readonly query: Query;
  /** Adds a message from the user. Returns false if the query accepts no more. */
  add(message: Prompt): boolean;
  kill(): void;
}

export interface QueryOptions {
  sdk: AgentSdk;
  job: Job;
  options: Record<string, unknown>;
  /** null if Claude Code continues by itself with a deferred call. */
  prompt: Prompt | null;
  onStart(live: LiveQuery): void;
  onMessage(message: unknown, live: LiveQuery): Promise<void>;
}

export interface QueryEnd {
  exitCode: number | null;
  signal: string | null;
  stderr: string;
  /** Why the program could not be started. */
  notStarted: string | null;
  /** It had reported its result but did not exit. */
  stoppedByDrover: boolean;
}

/** Runs one query to completion. No process of it is left afterwards. */
export async function runQuery({ sdk, job, options, prompt, onStart, onMessage }: QueryOptions): Promise<QueryEnd> {
  const inbox = new Inbox();
  const stderr = createStderrExcerpt();
  const started: { spawned?: SdkProcess; fault?: string } = {};
  const own: { error?: unknown } = {};
  let closed = false;
  let stoppedByDrover = false;
  let timer: NodeJS.Timeout | undefined;
  if (prompt !== null) inbox.add(prompt.text, prompt.uuid);

  const kill = (): void => void started.spawned?.kill();
  const spawn = (request: SpawnRequest): SdkProcess => {
    const spawned = new SdkProcess(request, job.context.start, (chunk) => stderr.push(chunk));
    spawned.on("error", (error: Error) => (started.fault = error.message));
    started.spawned = spawned;
    return spawned;
  };

  async function read(query: Query): Promise<void> {
    const background = createBackgroundTracker();
    const live: LiveQuery = {
      query,
      add({ text, uuid }) {
        if (!closed) inbox.add(text, uuid);
        return !closed;
      },
      kill,
    };
    // Interrupt the turn first, so that no further request is made. The run's own signal then stops the process.
    const interrupt = (): void => void query.interrupt().catch(() => undefined); // it may have exited already
    job.signal.addEventListener("abort", interrupt, { once: true });
    onStart(live);
    try {
      for await (const message of query) {
        clearTimeout(timer);
        await onMessage(message, live).catch((error: unknown) => {
          own.error = error;
          throw error;
        });
        const fields = fieldsOf(message);
        background.observe(fields);
        if (fields["type"] !== "result" || background.continues(fields)) continue;
        closed = true;
        inbox.end();
        timer = setTimeout(() => {
          stoppedByDrover = true;
          kill();
        }, exitGraceMs);
      }
    } finally {
      job.signal.removeEventListener("abort", interrupt);
    }
  }

  try {
    await read(sdk.query({ prompt: inbox, options: { ...options, spawnClaudeCodeProcess: spawn } }));
  } catch (error) {
    if ("error" in own) throw error;
    // any other error was already reported, by a result or by the process's exit
    if (!started.spawned) started.fault = error instanceof Error ? error.message : String(error);
  } finally {
    closed = true;
    clearTimeout(timer);
    kill();
    await started.spawned?.ended;
  }
  const { spawned, fault } = started;
  return {
    exitCode: spawned?.exitCode ?? null,
    signal: spawned?.signalCode ?? null,
    stderr: stderr.text(),
    notStarted: fault ?? null,
    stoppedByDrover,
  };
}

/** Tracks background subagents, which may give Claude Code more work after a result. */
function createBackgroundTracker() {
  let agents = 0;
  return {
    observe(message: Fields): void {
      if (message["subtype"] !== "background_tasks_changed") return;
      agents = listOf(message["tasks"]).filter((task) => fieldsOf(task)["task_type"] === "local_agent").length;
    },
    continues: (result: Fields): boolean =>
      result["is_error"] !== true && (agents > 0 || (numberOf(result["queued_turn_count"]) ?? 0) > 0),
  };
}
