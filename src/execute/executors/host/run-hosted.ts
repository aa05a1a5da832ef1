import { PassThrough, type Readable } from "node:stream";
import type { Executor, KeepFilesResult, Outcome, RunContext } from "../../../model/executor.ts";
import type { Command, OutputStream, RunningProcess } from "../../../model/process.ts";
import type { StopReason } from "../../../model/states.ts";
import { createStderrExcerpt } from "../../executions/stderr-excerpt.ts";
import { toStopOutcome, getStopReason, unresponsiveOutcome } from "../../supervise/stop-outcome.ts";
import { emitOutput } from "../../journal/output-events.ts";
import { readLines } from "../read-lines.ts";
import type { HostedProcess, HostedRun, SerializedEnd } from "./module-host.ts";
import { connectPeer, PeerClosedError, type Handlers, type Peer } from "./peer.ts";

export interface HostedModule {
  /** The command that starts the host program. */
  host: Command;
  url: string;
  config: Record<string, unknown>;
}

const maxLineBytes = 64 * 1024 * 1024;
/** How long a host may take to exit after its run. */
const exitTimeoutMs = 1000;

/** Runs an executor in its own process. This runner starts and records the executor's programs. */
export async function runHosted(
  { host, url, config }: HostedModule,
  name: string,
  invocation: Parameters<Executor["run"]>[0],
  context: RunContext,
): Promise<Outcome> {
  const running = await context.startHost(host);
  const excerpt = createStderrExcerpt();
  const peer = connectHost(
    running,
    createHandlers(context, () => peer),
  );
  const stderrLogged = emitOutput(running.stderr, "stderr", context.emit, excerpt);
  const onStop = (): void => void peer.call("stop", getStopReason(context.signal)).catch(ignoreClosed);
  context.signal.addEventListener("abort", onStop, { once: true });
  const onOverBudget = (): void => void peer.call("overBudget").catch(ignoreClosed);
  context.overBudget.addEventListener("abort", onOverBudget, { once: true });
  void forwardInputs(context.input, peer);
  const run: HostedRun = {
    invocation,
    dirs: { work: context.dirs.work, home: context.dirs.home, tmp: context.dirs.tmp },
    runnerDirectory: context.runnerDirectory,
    stopped: context.signal.aborted ? getStopReason(context.signal) : null,
    overBudget: context.overBudget.aborted,
  };
  try {
    return await peer.call<Outcome>("run", url, config, run);
  } catch (error) {
    if (!(error instanceof PeerClosedError)) throw error;
    const ended = await running.result;
    if (context.signal.aborted) {
      const reason = getStopReason(context.signal);
      if (running.pid === undefined || ended.stopped === null) return toStopOutcome(reason);
      const { outcome, event } = unresponsiveOutcome(name, reason, "Drover killed it");
      await context.emit(event);
      return outcome;
    }
    await stderrLogged;
    const cause = excerpt.text() || ended.error?.message || "it exited before its run finished";
    return {
      status: "failed",
      reason: "internal",
      message: `The executor ${name} stopped unexpectedly: ${cause}`,
      exit_code: null,
    };
  } finally {
    context.signal.removeEventListener("abort", onStop);
    context.overBudget.removeEventListener("abort", onOverBudget);
    await stopHost(running);
    await stderrLogged;
  }
}

/**
 * Loads the module in another process and describes its executor, so that a module that hangs does not hang the runner.
 */
export async function describeHosted({ url, config }: HostedModule, running: RunningProcess): Promise<object> {
  const excerpt = createStderrExcerpt();
  running.stderr?.on("data", (chunk: Buffer) => excerpt.push(chunk));
  try {
    return await connectHost(running, {}).call<object>("describe", url, config);
  } catch (error) {
    if (!(error instanceof PeerClosedError)) throw error;
    const { error: exitError } = await running.result;
    throw new Error(excerpt.text() || (exitError?.message ?? "the process exited while it loaded the module"), {
      cause: error,
    });
  } finally {
    await stopHost(running);
  }
}

function connectHost(running: RunningProcess, handlers: Handlers): Peer {
  return connectPeer({
    lines: readLines(running.stdout, maxLineBytes),
    write: (line) => void (running.stdin?.writable && running.stdin.write(line)),
    handlers,
    // A program that the module started may write to the same stdout.
    onUnknownLine: () => undefined,
  });
}

/** Closes the host's stdin, which makes it exit. Kills the host if it does not. */
async function stopHost(running: RunningProcess): Promise<void> {
  running.stdin?.end();
  const timer = setTimeout(() => void running.kill("shutdown"), exitTimeoutMs);
  await running.result;
  clearTimeout(timer);
}

function ignoreClosed(error: unknown): void {
  if (!(error instanceof PeerClosedError)) throw error;
}

async function forwardInputs(input: RunContext["input"], peer: Peer): Promise<void> {
  for await (const message of input) await peer.call("input", message).catch(ignoreClosed);
}

/** Starts reading immediately, because Node discards unread output when a process exits. */
function readChunks(stream: Readable | null): AsyncIterator<Buffer> | null {
  if (stream === null) return null;
  const buffered = new PassThrough();
  stream.once("error", (error) => buffered.destroy(error));
  return stream.pipe(buffered)[Symbol.asyncIterator]();
}

/** The methods of the run's context that the host can call. */
function createHandlers(context: RunContext, peer: () => Peer): Handlers {
  const processes: {
    running: RunningProcess;
    stdout: AsyncIterator<Buffer> | null;
    stderr: AsyncIterator<Buffer> | null;
  }[] = [];
  const findProcess = (id: number): RunningProcess => processes[id]!.running;
  return {
    emit: context.emit,
    partial: context.partial,
    usage: context.usage,
    ask: context.ask,
    async loadSession() {
      const state = await context.session.load();
      return state && { ...state, bytes: Buffer.from(state.bytes).toString("base64") };
    },
    saveSession: (format: string, bytes: string, saveOptions: Parameters<RunContext["session"]["save"]>[2]) =>
      context.session.save(format, Buffer.from(bytes, "base64"), saveOptions),
    async start(command: Command): Promise<HostedProcess> {
      const running = await context.start(command);
      const { pid, withheld, stdin, stdout, stderr } = running;
      const id = processes.push({ running, stdout: readChunks(stdout), stderr: readChunks(stderr) }) - 1;
      const streams = { stdin: stdin !== null, stdout: stdout !== null, stderr: stderr !== null };
      return { id, pid, withheld, streams };
    },
    async result(id: number): Promise<SerializedEnd> {
      const ended = await findProcess(id).result;
      return { ...ended, startTime: ended.startTime.toISOString(), endTime: ended.endTime.toISOString() };
    },
    kill: (id: number, reason: StopReason) => findProcess(id).kill(reason),
    async read(id: number, stream: OutputStream): Promise<string | null> {
      const { done, value } = await processes[id]![stream]!.next();
      return done ? null : value.toString("base64");
    },
    write: (id: number, chunk: string) =>
      new Promise<void>((resolve, reject) =>
        findProcess(id).stdin!.write(Buffer.from(chunk, "base64"), (error) => (error ? reject(error) : resolve())),
      ),
    endInput: (id: number) => new Promise<void>((resolve) => findProcess(id).stdin!.end(resolve)),
    keepFiles: (files: { path: string; size: number }[]): Promise<KeepFilesResult> =>
      context.keepFiles(
        files.map(({ path, size }, index) => ({
          path,
          size,
          async open() {
            const id = await peer().call<number>("openFile", index);
            return {
              stat: () => peer().call<{ size: number }>("statFile", id),
              async read({ buffer, position }) {
                const content = await peer().call<string>("readFile", id, position, buffer.length);
                return { bytesRead: Buffer.from(content, "base64").copy(buffer) };
              },
              close: () => peer().call<void>("closeFile", id),
            };
          },
        })),
      ),
  };
}
