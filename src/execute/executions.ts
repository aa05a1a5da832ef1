import { finished } from "node:stream/promises";
import type { Readable } from "node:stream";
import type { RunEvent } from "../model/event.ts";
import type { Correlation, ExecutionEnd, ExecutionStart } from "../model/execution.ts";
import type { RunContext } from "../model/executor.ts";
import { RequestError } from "../model/errors.ts";
import type { NewId } from "../model/ids.ts";
import type { Command, Ended, Limits, Redactor, Running, StartCommand, StartOptions } from "../model/process.ts";
import { checkCommand } from "../process/check.ts";
import { withHeldBefore } from "../process/held-watch.ts";

/** Starts processes on the record: the start is durable before the spawn, the end follows it. */
export interface Executions {
  start(command: Command, signal: AbortSignal): Promise<Running>;
  /** Resolves when the end of everything started is in the log. `now`: also where nobody reads its output to the end. */
  settled(): Promise<void>;
}

export interface ExecutionsOptions {
  start: StartCommand;
  options: Omit<StartOptions, "ids" | "output" | "stdin">;
  /** DROVER_* ids that every process of the run gets. */
  ids: Readonly<Record<string, string>>;
  dirs: RunContext["dirs"];
  timeoutMs: number | null;
  /** Of each command, unless it comes with its own. */
  commandLimits: Limits;
  owner: ExecutionStart["owner"];
  correlation: Correlation;
  newId: NewId;
  now: () => Date;
  redactor: Redactor;
  append: (event: RunEvent) => void;
  sync: () => Promise<void>;
}

export function createExecutions(options: ExecutionsOptions): Executions {
  const ends: Promise<void>[] = [];
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));

  const recordEnd = async (execution_id: string, running: Running): Promise<void> => {
    const ended = await running.result;
    await Promise.race([Promise.all([readToEnd(running.stdout), readToEnd(running.stderr)]), released]);
    // whoever read the last of it hands it on in this same turn
    await new Promise((resolve) => setImmediate(resolve));
    options.append({ type: "execution_ended", execution: endOf(execution_id, ended, running) });
  };

  return {
    async start(given, signal) {
      const command: Command = {
        ...given,
        workingDirectory: given.workingDirectory ?? options.dirs.work,
        environment: { TMPDIR: options.dirs.tmp, HOME: options.dirs.home, ...given.environment },
        limits: { ...options.commandLimits, ...given.limits },
      };
      checkCommand(command);
      const startOptions = await withHeldBefore(command, options.options, signal);
      if ("fault" in startOptions)
        throw new RequestError({ code: startOptions.fault.code, message: startOptions.fault.message });
      const execution_id = options.newId();
      options.append({ type: "execution_started", execution: startOf(execution_id, command, options) });
      await options.sync();
      const running = options.start(
        command,
        {
          ...startOptions,
          writable: [options.dirs.home],
          ids: { ...options.ids, DROVER_EXECUTION_ID: execution_id },
          stdin: "pipe",
          output: "both",
        },
        signal,
      );
      ends.push(recordEnd(execution_id, running));
      return running;
    },
    async settled() {
      release();
      await Promise.all(ends);
    },
  };
}

function startOf(execution_id: string, command: Command, { redactor, ...options }: ExecutionsOptions): ExecutionStart {
  const argv = redactor.value([command.executable, ...(command.arguments ?? [])]);
  return {
    execution_id,
    command: argv.map(asTyped).join(" "),
    argv,
    working_directory: command.workingDirectory!,
    started_at: options.now().toISOString(),
    timeout_ms: command.timeoutMs ?? options.timeoutMs,
    owner: options.owner,
    correlation: redactor.value(options.correlation),
  };
}

/** A word as a person would type it into a shell. */
function asTyped(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function endOf(execution_id: string, ended: Ended, running: Running): ExecutionEnd {
  const { resources, error } = ended;
  return {
    execution_id,
    exit_code: ended.exitCode,
    signal: ended.signal,
    stopped: ended.stopped,
    success: error === null,
    timed_out: ended.stopped === "timeout",
    interrupted: false,
    ended_at: ended.endTime.toISOString(),
    duration_ms: ended.durationMs,
    isolation: ended.isolation,
    leftovers: ended.leftovers,
    resources: resources && {
      user_ms: resources.userMs,
      system_ms: resources.systemMs,
      max_rss_kb: resources.maxRssKb,
    },
    error: error && { code: error.code, message: error.message },
    stdout_bytes: bytesRead(running.stdout),
    stderr_bytes: bytesRead(running.stderr),
    truncated: false,
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
