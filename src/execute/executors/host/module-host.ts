// Runs an executor from a module in its own process, so that it can always be killed. ./run-hosted.ts
// starts it with the module's URL. stdin and stdout carry the calls of ./peer.ts.
import { Readable, Writable } from "node:stream";
import { callbackify } from "node:util";
import type { Executor, FoundFile, Invocation, OpenFile, RunContext, UserInput } from "../../../model/executor.ts";
import type { ProcessEnd, OutputStream, RunningProcess } from "../../../model/process.ts";
import { createInputQueue } from "../../supervise/input-queue.ts";
import { readLines } from "../read-lines.ts";
import { connectPeer, type Peer } from "./peer.ts";

/** The input of a run. */
export interface HostedRun {
  invocation: Invocation;
  dirs: RunContext["dirs"];
  runnerDirectory: string;
  /** The reason if the run was stopped before it started; null otherwise. */
  stopped: string | null;
  overBudget: boolean;
}

/** A started program, as described to the host. */
export interface HostedProcess extends Pick<RunningProcess, "pid" | "withheld"> {
  id: number;
  streams: { stdin: boolean; stdout: boolean; stderr: boolean };
}

/** The result of a process, with its times as strings. */
export type SerializedEnd = Omit<ProcessEnd, "startTime" | "endTime"> & { startTime: string; endTime: string };

const maxLineBytes = 64 * 1024 * 1024;

// stdout carries the protocol, so a module's output goes to stderr and from there to the run's log.
const writeToRunner = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
// Exit if the runner is gone.
for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on("error", () => process.exit(1));

const stopController = new AbortController();
const overBudget = new AbortController();
const input = createInputQueue();
const files = new Map<number, FoundFile>();
const handles = new Map<number, OpenFile>();
let lastHandle = 0;

const peer: Peer = connectPeer({
  lines: readLines(process.stdin, maxLineBytes),
  write: (line) => void writeToRunner(line),
  onUnknownLine: (text) =>
    void process.stderr.write(`Ignored a line that is not a message from the runner: ${text.slice(0, 200)}\n`),
  handlers: {
    async describe(url: string, config: Record<string, unknown>) {
      const { name, can, variables } = await load(url, config);
      return { name, can, ...(variables === undefined ? {} : { variables }) };
    },
    async run(url: string, config: Record<string, unknown>, run: HostedRun) {
      if (run.stopped !== null) stopController.abort(run.stopped);
      if (run.overBudget) overBudget.abort();
      return (await load(url, config)).run(run.invocation, createContext(run));
    },
    stop: (reason: string) => stopController.abort(reason),
    overBudget: () => overBudget.abort(),
    input: (message: UserInput) => input.push(message),
    async openFile(id: number) {
      const handle = await files.get(id)!.open();
      handles.set(++lastHandle, handle);
      return lastHandle;
    },
    statFile: async (id: number) => ({ size: (await handles.get(id)!.stat()).size }),
    async readFile(id: number, position: number, length: number) {
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await handles.get(id)!.read({ buffer, position });
      return buffer.toString("base64", 0, bytesRead);
    },
    async closeFile(id: number) {
      await handles.get(id)?.close();
      handles.delete(id);
    },
  },
});
// The runner has finished or is gone, so the module's timers must not keep this process alive.
void peer.closed.then(() => process.exit(0));

async function load(url: string, config: Record<string, unknown>): Promise<Executor> {
  const imported = (await import(url)) as object; // A module's exports are an object.
  const create: unknown = Reflect.get(imported, "createExecutor");
  const executor: unknown =
    typeof create === "function"
      ? await (create as (config: unknown) => unknown)(config)
      : Reflect.get(imported, "executor");
  if (!isExecutor(executor)) throw new Error(describeWrongExport(imported));
  return executor;
}

function isExecutor(value: unknown): value is Executor {
  if (typeof value !== "object" || value === null) return false;
  return (
    typeof Reflect.get(value, "name") === "string" &&
    typeof Reflect.get(value, "can") === "object" &&
    typeof Reflect.get(value, "run") === "function"
  );
}

function describeWrongExport(imported: object): string {
  const names = Object.keys(imported);
  const exported = names.length === 0 ? "nothing" : names.join(", ");
  return `it must export \`executor\`, the return value of \`defineExecutor({ name, execute })\`, or a function \`createExecutor(config)\` that returns one; it exports ${exported}`;
}

function createContext({ dirs, runnerDirectory }: HostedRun): RunContext {
  /** Sends a call without waiting for its response. This process exits once the runner is gone. */
  const notify = (method: string, ...args: unknown[]): void => void peer.call(method, ...args).catch(() => undefined);
  return {
    signal: stopController.signal,
    overBudget: overBudget.signal,
    emit: (event) => peer.call("emit", event),
    partial: (delta) => notify("partial", delta),
    ask: (question) => peer.call("ask", question),
    usage: (usage) => notify("usage", usage),
    input,
    start: async (command) => toRunning(await peer.call<HostedProcess>("start", command)),
    startHost: () => Promise.reject(new Error("an executor from a module already runs in a host")),
    async keepFiles(foundFiles) {
      files.clear();
      foundFiles.forEach((file, id) => files.set(id, file));
      return peer.call(
        "keepFiles",
        foundFiles.map(({ path, size }) => ({ path, size })),
      );
    },
    session: {
      async load() {
        const state = await peer.call<{ format: string; bytes: string; here: boolean } | null>("loadSession");
        return state && { ...state, bytes: Buffer.from(state.bytes, "base64") };
      },
      save: (format, bytes, saveOptions) =>
        peer.call("saveSession", format, Buffer.from(bytes).toString("base64"), saveOptions ?? {}),
    },
    dirs,
    runnerDirectory,
  };
}

function toRunning({ id, pid, withheld, streams }: HostedProcess): RunningProcess {
  const result = peer.call<SerializedEnd>("result", id).then((ended): ProcessEnd => ({
    ...ended,
    startTime: new Date(ended.startTime),
    endTime: new Date(ended.endTime),
  }));
  // Avoids an unhandled rejection in a module that does not await the result.
  result.catch(() => undefined);
  return {
    pid,
    withheld,
    stdin: streams.stdin ? createWriter(id) : null,
    stdout: streams.stdout ? createReader(id, "stdout") : null,
    stderr: streams.stderr ? createReader(id, "stderr") : null,
    kill: (reason) => peer.call("kill", id, reason),
    result,
  };
}

/** Requests more only while the module reads, so that backpressure reaches the program. */
function createReader(id: number, stream: OutputStream): Readable {
  return new Readable({
    read() {
      peer.call<string | null>("read", id, stream).then(
        (chunk) => this.push(chunk === null ? null : Buffer.from(chunk, "base64")),
        (error: Error) => this.destroy(error),
      );
    },
  });
}

function createWriter(id: number): Writable {
  const write = callbackify((chunk: Buffer) => peer.call<void>("write", id, chunk.toString("base64")));
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, callback) => write(chunk, callback),
    final: callbackify(() => peer.call<void>("endInput", id)),
  });
  // A program may exit without reading its stdin; its exit code shows whether that was an error.
  stdin.on("error", () => undefined);
  return stdin;
}
