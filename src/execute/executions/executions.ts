import { finished } from "node:stream/promises";
import type { Readable } from "node:stream";
import type { Correlation, ExecutionStart } from "../../model/execution.ts";
import type { RunContext } from "../../model/executor.ts";
import { RequestError } from "../../model/errors.ts";
import { createInterruptedEnd } from "../../model/interrupted-end.ts";
import type { NewId } from "../../model/ids.ts";
import type { Command, Limits, RunningProcess, StartCommand, StartOptions } from "../../model/process.ts";
import { checkCommand } from "../../process/check-command.ts";
import { isWithin } from "../../process/protected-paths.ts";
import { addInitialUsage } from "../../process/disk-usage-watch.ts";
import { buildExecutionEnd, buildExecutionStart } from "./execution-record.ts";
import { findNestedDirectories } from "../nested/nested-directories.ts";
import type { Recorder } from "../journal/recorder.ts";

/** Starts processes and records them. The start is durable before the spawn. */
export interface Executions {
  start(command: Command, signal: AbortSignal): Promise<RunningProcess>;
  /** Starts the process that an executor runs in; see RunContext. */
  startExecutorProcess(command: Command, signal: AbortSignal): Promise<RunningProcess>;
  /**
   * Stops the processes that are still running and resolves with their number, once the end of every execution is in
   * the log. Does not wait for unread output.
   */
  end(): Promise<number>;
}

export interface ExecutionsOptions {
  start: StartCommand;
  startOptions: Omit<StartOptions, "ids" | "output" | "stdin">;
  /** DROVER_* variables for every process of the run. */
  droverVariables: Readonly<Record<string, string>>;
  dirs: RunContext["dirs"];
  /** Paths that are writable in a sandbox, besides the run's directories. */
  writable: readonly string[];
  timeoutMs: number | null;
  /** Default limits of each command. */
  commandLimits: Limits;
  /** Limits of the whole run. The disk watch enforces them; here they are only recorded with each command. */
  runLimits: Limits;
  owner: ExecutionStart["owner"];
  correlation: Correlation;
  newId: NewId;
  now: () => Date;
  recorder: Pick<Recorder, "recordStart" | "recordEnd">;
  sync: () => Promise<void>;
}

/** An executor's process is killed only after it has ignored a stop, so it gets almost no grace period. */
const executorProcessOptions = { environment: { mode: "inherit", allow: ["*"] }, graceMs: 100 } as const;

export function createExecutions(options: ExecutionsOptions): Executions {
  const { recorder } = options;
  const endRecords: Promise<void>[] = [];
  const pendingStarts = new Set<Promise<RunningProcess>>();
  const runningProcesses = new Set<RunningProcess>();
  const { memoryBytes } = options.commandLimits;
  const executorProcessLimits: Limits = memoryBytes === undefined ? {} : { memoryBytes };
  let endController = new AbortController();
  let stopWaitingForOutput!: () => void;
  const outputWaitEnded = new Promise<void>((resolve) => (stopWaitingForOutput = resolve));

  const trackUntilEnd = async (execution_id: string, running: RunningProcess): Promise<void> => {
    runningProcesses.add(running);
    const ended = await running.result;
    runningProcesses.delete(running);
    await Promise.race([Promise.all([readToEnd(running.stdout), readToEnd(running.stderr)]), outputWaitEnded]);
    // Let the reader of the last chunk record it first.
    await new Promise((resolve) => setImmediate(resolve));
    recorder.recordEnd(
      buildExecutionEnd(execution_id, ended, {
        stdoutBytes: countBytesRead(running.stdout),
        stderrBytes: countBytesRead(running.stderr),
        truncated: false,
      }),
    );
  };

  const startRecorded = async (
    requested: Command,
    stopSignal: AbortSignal,
    isExecutorProcess: boolean,
  ): Promise<RunningProcess> => {
    const signal = AbortSignal.any([stopSignal, endController.signal]);
    const command = {
      ...requested,
      workingDirectory: requested.workingDirectory ?? options.dirs.work,
      // The run's own TMPDIR is the one that a sandbox can write to.
      environment: { HOME: options.dirs.home, ...requested.environment, TMPDIR: options.dirs.tmp },
      limits: isExecutorProcess ? executorProcessLimits : { ...options.commandLimits, ...requested.limits },
    };
    checkCommand(command);
    const startOptions = await addInitialUsage(
      command,
      { ...options.startOptions, ...(isExecutorProcess ? executorProcessOptions : {}) },
      signal,
    );
    if ("fault" in startOptions)
      throw new RequestError({ code: startOptions.fault.code, message: startOptions.fault.message });
    const execution_id = options.newId();
    recorder.recordStart(
      buildExecutionStart({
        execution_id,
        command,
        options: startOptions,
        limits: options.runLimits,
        timeoutMs: options.timeoutMs,
        now: options.now(),
        owner: options.owner,
        correlation: options.correlation,
      }),
    );
    await options.sync();
    try {
      const running = options.start(
        command,
        {
          ...startOptions,
          ...(isWithin(command.workingDirectory, options.dirs.work) ? { workRoot: options.dirs.work } : {}),
          temporaryDirectory: options.dirs.tmp,
          writable: [options.dirs.home, ...options.writable],
          show: findNestedDirectories(options.droverVariables),
          ids: { ...options.droverVariables, DROVER_EXECUTION_ID: execution_id },
          stdin: "pipe",
          output: "both",
        },
        signal,
      );
      endRecords.push(trackUntilEnd(execution_id, running));
      return running;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const failedAt = options.now().toISOString();
      recorder.recordEnd(createInterruptedEnd(execution_id, failedAt, reason));
      throw error;
    }
  };

  const start = async (...args: Parameters<typeof startRecorded>): Promise<RunningProcess> => {
    const started = startRecorded(...args);
    pendingStarts.add(started);
    try {
      return await started;
    } finally {
      pendingStarts.delete(started);
    }
  };

  return {
    start: (command, signal) => start(command, signal, false),
    startExecutorProcess: (command, signal) => start(command, signal, true),
    async end() {
      const remaining = pendingStarts.size + runningProcesses.size;
      endController.abort("shutdown");
      // A command that starts after this, such as `on_finish`, must not be stopped at once.
      endController = new AbortController();
      stopWaitingForOutput();
      await Promise.allSettled(pendingStarts);
      await Promise.all(endRecords);
      return remaining;
    },
  };
}

/** Node's pipes to a child are sockets, which count the bytes read. */
function countBytesRead(stream: Readable | null): number {
  const count: unknown = stream === null ? 0 : Reflect.get(stream, "bytesRead");
  return typeof count === "number" ? count : 0;
}

async function readToEnd(stream: Readable | null): Promise<void> {
  if (stream === null || stream.readableEnded || stream.destroyed) return;
  // An error also ends the stream; the reader handles it.
  await finished(stream, { writable: false }).catch(() => undefined);
}
