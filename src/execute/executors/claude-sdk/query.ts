import { Inbox } from "../../../llm/claude-code/inbox.ts";
import type { AgentSdk, Query, SpawnRequest } from "../../../llm/claude-code/sdk.ts";
import { SdkProcess } from "../../../llm/claude-code/sdk-process.ts";
import { createStderrExcerpt } from "../../executions/stderr-excerpt.ts";
import type { Job } from "../../scaffold/define-executor.ts";
import { type Fields, toFields, toList, toNumber } from "../clients/fields.ts";
import { exitGraceMs } from "../clients/exit-grace.ts";

/** A message from the user. `uuid` identifies it in the transcript. */
export interface QueryMessage {
  text: string;
  uuid?: string;
}

/** One Claude Code process, from its first message to its exit. */
export interface LiveQuery {
  readonly query: Query;
  /** Adds a message from the user. Returns false if the query accepts no more. */
  add(message: QueryMessage): boolean;
  kill(): void;
}

export interface QueryOptions {
  sdk: AgentSdk;
  job: Job;
  options: Record<string, unknown>;
  /** null if Claude Code resumes a deferred call and needs no message. */
  prompt: QueryMessage | null;
  onStart(live: LiveQuery): void;
  onMessage(message: unknown, live: LiveQuery): Promise<void>;
}

export interface QueryEnd {
  exitCode: number | null;
  signal: string | null;
  stderr: string;
  /** The error that kept the program from starting; null if it started. */
  startError: string | null;
  /** Whether Drover killed the process, because it did not exit after reporting its result. */
  killedAfterResult: boolean;
}

/** Runs one query to completion. Its process has exited when this returns. */
export async function runQuery({ sdk, job, options, prompt, onStart, onMessage }: QueryOptions): Promise<QueryEnd> {
  const inbox = new Inbox();
  const stderr = createStderrExcerpt();
  const started: { process?: SdkProcess; error?: string } = {};
  const handlerFailure: { error?: unknown } = {};
  let isClosed = false;
  let killedAfterResult = false;
  let timer: NodeJS.Timeout | undefined;
  if (prompt !== null) inbox.add(prompt.text, prompt.uuid);

  const kill = (): void => void started.process?.kill();
  const spawn = (request: SpawnRequest): SdkProcess => {
    const spawned = new SdkProcess(request, job.context.start, (chunk) => stderr.push(chunk));
    spawned.on("error", (error: Error) => (started.error = error.message));
    started.process = spawned;
    return spawned;
  };

  async function read(query: Query): Promise<void> {
    const background = createBackgroundTracker();
    const live: LiveQuery = {
      query,
      add({ text, uuid }) {
        if (!isClosed) inbox.add(text, uuid);
        return !isClosed;
      },
      kill,
    };
    // Interrupt the turn, so that Claude Code makes no further request before the run's signal stops its process.
    const interrupt = (): void => void query.interrupt().catch(() => undefined); // The process may have exited already.
    job.signal.addEventListener("abort", interrupt, { once: true });
    onStart(live);
    try {
      for await (const message of query) {
        clearTimeout(timer);
        await onMessage(message, live).catch((error: unknown) => {
          handlerFailure.error = error;
          throw error;
        });
        const fields = toFields(message);
        background.observe(fields);
        if (fields["type"] !== "result" || background.hasMoreWork(fields)) continue;
        isClosed = true;
        inbox.end();
        timer = setTimeout(() => {
          killedAfterResult = true;
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
    if ("error" in handlerFailure) throw error;
    // A started process reports its own errors, by a result or by its exit code.
    if (!started.process) started.error = error instanceof Error ? error.message : String(error);
  } finally {
    isClosed = true;
    clearTimeout(timer);
    kill();
    await started.process?.ended;
  }
  const { process: exited, error: startError } = started;
  return {
    exitCode: exited?.exitCode ?? null,
    signal: exited?.signalCode ?? null,
    stderr: stderr.text(),
    startError: startError ?? null,
    killedAfterResult,
  };
}

/** Tracks background subagents. Claude Code continues after a result while any of them runs. */
function createBackgroundTracker() {
  let subagents = 0;
  return {
    observe(message: Fields): void {
      if (message["subtype"] !== "background_tasks_changed") return;
      subagents = toList(message["tasks"]).filter((task) => toFields(task)["task_type"] === "local_agent").length;
    },
    hasMoreWork: (result: Fields): boolean =>
      result["is_error"] !== true && (subagents > 0 || (toNumber(result["queued_turn_count"]) ?? 0) > 0),
  };
}
