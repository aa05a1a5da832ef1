import { finished } from "node:stream/promises";
import type { Readable } from "node:stream";
import type { Correlation, ExecutionStart } from "../../model/execution.ts";
import type { RunContext } from "../../model/executor.ts";
import { RequestError } from "../../model/errors.ts";
import { interruptedEnd } from "../../model/interrupted-end.ts";
import type { NewId } from "../../model/ids.ts";
import type { Command, Limits, Running, StartCommand, StartOptions } from "../../model/process.ts";
import { checkCommand } from "../../process/check.ts";
import { withHeldBefore } from "../../process/held-watch.ts";
import { executionEnd, executionStart } from "./execution-record.ts";
import { nestedDirectories } from "../nested/nested-directories.ts";
import type { Recorder } from "../journal/recorder.ts";

/** Starts processes on the record: the start is durable before the spawn, the end follows it. */
export interface Executions {
  start(command: Command, signal: AbortSignal): Promise<Running>;
  /** The process that an executor runs in; see RunContext. */
  startHost(command: Command, signal: AbortSignal): Promise<Running>;
  /**
   * Ends what still runs and resolves with the number of those, once the end of everything started is in the log: also
   * where nobody reads its output.
   */
  end(): Promise<number>;
}

export interface ExecutionsOptions {
  start: StartCommand;
  options: Omit<StartOptions, "ids" | "output" | "stdin">;
  /** DROVER_* ids that every process of the run gets. */
  ids: Readonly<Record<string, string>>;
  dirs: RunContext["dirs"];
  /** Beside its directories, in a sandbox. */
  writable: readonly string[];
  timeoutMs: number | null;
  /** Of each command, unless it comes with its own. */
  commandLimits: Limits;
  /** Of the run as a whole; watched elsewhere, recorded with each command. */
  runLimits: Limits;
  owner: ExecutionStart["owner"];
  correlation: Correlation;
  newId: NewId;
  now: () => Date;
  recorder: Pick<Recorder, "started" | "ended">;
  sync: () => Promise<void>;
}

/** It is killed for having ignored a stop, so it is not asked again. */
const ofHosts = { environment: { mode: "inherit", allow: ["*"] }, graceMs: 100 } as const;

export function createExecutions(options: ExecutionsOptions): Executions {
  const { recorder } = options;
  const ends: Promise<void>[] = [];
  const starting = new Set<Promise<Running>>();
  const alive = new Set<Running>();
  const { memoryBytes } = options.commandLimits;
  const hostLimits: Limits = memoryBytes === undefined ? {} : { memoryBytes };
  let closing = new AbortController();
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));

  const recordEnd = async (execution_id: string, running: Running): Promise<void> => {
    alive.add(running);
    const ended = await running.result;
    alive.delete(running);
    await Promise.race([Promise.all([readToEnd(running.stdout), readToEnd(running.stderr)]), released]);
    // whoever read the last of it hands it on in this same turn
    await new Promise((resolve) => setImmediate(resolve));
    recorder.ended(
      executionEnd(execution_id, ended, {
        stdoutBytes: bytesRead(running.stdout),
        stderrBytes: bytesRead(running.stderr),
        truncated: false,
      }),
    );
  };

  const startOne = async (given: Command, stopped: AbortSignal, isHost: boolean): Promise<Running> => {
    const signal = AbortSignal.any([stopped, closing.signal]);
    const command = {
      ...given,
      workingDirectory: given.workingDirectory ?? options.dirs.work,
      environment: { TMPDIR: options.dirs.tmp, HOME: options.dirs.home, ...given.environment },
      limits: isHost ? hostLimits : { ...options.commandLimits, ...given.limits },
    };
    checkCommand(command);
    const startOptions = await withHeldBefore(command, { ...options.options, ...(isHost ? ofHosts : {}) }, signal);
    if ("fault" in startOptions)
      throw new RequestError({ code: startOptions.fault.code, message: startOptions.fault.message });
    const execution_id = options.newId();
    recorder.started(
      executionStart({
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
          writable: [options.dirs.home, ...options.writable],
          show: nestedDirectories(options.ids),
          ids: { ...options.ids, DROVER_EXECUTION_ID: execution_id },
          stdin: "pipe",
          output: "both",
        },
        signal,
      );
      ends.push(recordEnd(execution_id, running));
      return running;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const at = options.now().toISOString();
      recorder.ended(interruptedEnd(execution_id, at, why));
      throw error;
    }
  };

  const start = async (...what: Parameters<typeof startOne>): Promise<Running> => {
    const started = startOne(...what);
    starting.add(started);
    try {
      return await started;
    } finally {
      starting.delete(started);
    }
  };

  return {
    start: (command, signal) => start(command, signal, false),
    startHost: (command, signal) => start(command, signal, true),
    async end() {
      const left = starting.size + alive.size;
      closing.abort("shutdown");
      closing = new AbortController();
      release();
      await Promise.allSettled(starting);
      await Promise.all(ends);
      return left;
    },
  };
}

/** A child's pipe is a socket, which counts. */
function bytesRead(stream: Readable | null): number {
  const count: unknown = stream === null ? 0 : Reflect.get(stream, "bytesRead");
  return typeof count === "number" ? count : 0;
}

async function readToEnd(stream: Readable | null): Promise<void> {
  if (stream === null || stream.readableEnded || stream.destroyed) return;
  // an error ends it as well, and was the reader's to see
  await finished(stream, { writable: false }).catch(() => undefined);
}
