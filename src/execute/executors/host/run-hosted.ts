import { PassThrough, type Readable } from "node:stream";
import type { Executor, FilesKept, Outcome, RunContext } from "../../../model/executor.ts";
import type { Command, OutputStream, Running } from "../../../model/process.ts";
import type { StopReason } from "../../../model/states.ts";
import { createStderrExcerpt } from "../../executions/stderr-excerpt.ts";
import { outcomeOfStop, stopReasonOf, unresponsiveOutcome } from "../../supervise/stop-outcome.ts";
import { emitOutput } from "../../journal/output-events.ts";
import { readLines } from "../read-lines.ts";
import type { HostedProcess, HostedRun, SerializedEnd } from "./module-host.ts";
import { connectPeer, PeerClosedError, type Handlers, type Peer } from "./peer.ts";

export interface HostedModule {
  /** Starts the host program. */
  host: Command;
  url: string;
  config: Record<string, unknown>;
}

const maxLineBytes = 64 * 1024 * 1024;
/** How long a host may take to exit once it has answered. */
const exitMs = 1000;

/** Runs an executor in its own process. The programs it starts are started and recorded by this runner. */
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
    handlersOf(context, () => peer),
  );
  const logged = emitOutput(running.stderr, "stderr", context.emit, excerpt);
  const stop = (): void => void peer.call("stop", stopReasonOf(context.signal)).catch(ignoreClosed);
  context.signal.addEventListener("abort", stop, { once: true });
  const overBudget = (): void => void peer.call("overBudget").catch(ignoreClosed);
  context.overBudget.addEventListener("abort", overBudget, { once: true });
  void passInputs(context.input, peer);
  const run: HostedRun = {
    invocation,
    dirs: { work: context.dirs.work, home: context.dirs.home, tmp: context.dirs.tmp },
    runnerDirectory: context.runnerDirectory,
    stopped: context.signal.aborted ? stopReasonOf(context.signal) : null,
    overBudget: context.overBudget.aborted,
  };
  try {
    return await peer.call<Outcome>("run", url, config, run);
  } catch (error) {
    if (!(error instanceof PeerClosedError)) throw error;
    const ended = await running.result;
    if (context.signal.aborted) {
      const reason = stopReasonOf(context.signal);
      if (running.pid === undefined || ended.stopped === null) return outcomeOfStop(reason);
      const { outcome, event } = unresponsiveOutcome(name, reason, "was killed");
      await context.emit(event);
      return outcome;
    }
    await logged;
    const why = excerpt.text() || ended.error?.message || "it exited before its run finished";
    return {
      status: "failed",
      reason: "internal",
      message: `The executor ${name} stopped unexpectedly: ${why}`,
      exit_code: null,
    };
  } finally {
    context.signal.removeEventListener("abort", stop);
    context.overBudget.removeEventListener("abort", overBudget);
    await stopHost(running);
    await logged;
  }
}

/** Describes the module's executor from another process, so that code that hangs while loading does not hang the runner. */
export async function describeHosted({ url, config }: HostedModule, running: Running): Promise<object> {
  const excerpt = createStderrExcerpt();
  running.stderr?.on("data", (chunk: Buffer) => excerpt.push(chunk));
  try {
    return await connectHost(running, {}).call<object>("describe", url, config);
  } catch (error) {
    if (!(error instanceof PeerClosedError)) throw error;
    const { error: fault } = await running.result;
    throw new Error(excerpt.text() || (fault?.message ?? "the process exited while it loaded the module"), {
      cause: error,
    });
  } finally {
    await stopHost(running);
  }
}

function connectHost(running: Running, handlers: Handlers): Peer {
  return connectPeer({
    lines: readLines(running.stdout, maxLineBytes),
    write: (line) => void (running.stdin?.writable && running.stdin.write(line)),
    handlers,
    // a program that the module started may share this process's stdout
    onUnknownLine: () => undefined,
  });
}

/** Closes stdin, at which the host exits, and kills it if it does not. */
async function stopHost(running: Running): Promise<void> {
  running.stdin?.end();
  const late = setTimeout(() => void running.kill("shutdown"), exitMs);
  await running.result;
  clearTimeout(late);
}

function ignoreClosed(error: unknown): void {
  if (!(error instanceof PeerClosedError)) throw error;
}

async function passInputs(input: RunContext["input"], peer: Peer): Promise<void> {
  for await (const given of input) await peer.call("input", given).catch(ignoreClosed);
}

/** Starts to read at once, because Node discards unread output when a process exits. */
function chunksOf(stream: Readable | null): AsyncIterator<Buffer> | null {
  if (stream === null) return null;
  const read = new PassThrough();
  stream.once("error", (error) => read.destroy(error));
  return stream.pipe(read)[Symbol.asyncIterator]();
}

/** The methods of the run's context that the host can call. */
function handlersOf(context: RunContext, peer: () => Peer): Handlers {
  const started: { running: Running; stdout: AsyncIterator<Buffer> | null; stderr: AsyncIterator<Buffer> | null }[] =
    [];
  const of = (id: number): Running => started[id]!.running;
  return {
    emit: context.emit,
    partial: context.partial,
    usage: context.usage,
    ask: context.ask,
    async loadSession() {
      const state = await context.session.load();
      return state && { ...state, bytes: Buffer.from(state.bytes).toString("base64") };
    },
    saveSession: (format: string, bytes: string, more: Parameters<RunContext["session"]["save"]>[2]) =>
      context.session.save(format, Buffer.from(bytes, "base64"), more),
    async start(command: Command): Promise<HostedProcess> {
      const running = await context.start(command);
      const { pid, withheld, stdin, stdout, stderr } = running;
      const id = started.push({ running, stdout: chunksOf(stdout), stderr: chunksOf(stderr) }) - 1;
      const streams = { stdin: stdin !== null, stdout: stdout !== null, stderr: stderr !== null };
      return { id, pid, withheld, streams };
    },
    async result(id: number): Promise<SerializedEnd> {
      const ended = await of(id).result;
      return { ...ended, startTime: ended.startTime.toISOString(), endTime: ended.endTime.toISOString() };
    },
    kill: (id: number, reason: StopReason) => of(id).kill(reason),
    async read(id: number, from: OutputStream): Promise<string | null> {
      const { done, value } = await started[id]![from]!.next();
      return done ? null : value.toString("base64");
    },
    write: (id: number, chunk: string) =>
      new Promise<void>((resolve, reject) =>
        of(id).stdin!.write(Buffer.from(chunk, "base64"), (error) => (error ? reject(error) : resolve())),
      ),
    endInput: (id: number) => new Promise<void>((resolve) => of(id).stdin!.end(resolve)),
    keepFiles: (files: { path: string; size: number }[]): Promise<FilesKept> =>
      context.keepFiles(
        files.map(({ path, size }, file) => ({
          path,
          size,
          async open() {
            const id = await peer().call<number>("openFile", file);
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
