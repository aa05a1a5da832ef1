// The process in which an executor from a module runs, so that it can be killed whatever it does. ./run-hosted.ts
// starts it with the module's URL. stdin and stdout carry the calls of ./peer.ts.
import { Readable, Writable } from "node:stream";
import { callbackify } from "node:util";
import type { Executor, FoundFile, Invocation, OpenFile, RunContext, UserInput } from "../../../model/executor.ts";
import type { Ended, OutputStream, Running } from "../../../model/process.ts";
import { createInputQueue } from "../../supervise/input-queue.ts";
import { readLines } from "../read-lines.ts";
import { connectPeer, type Peer } from "./peer.ts";

/** The input of a run. */
export interface HostedRun {
  invocation: Invocation;
  dirs: RunContext["dirs"];
  runnerDirectory: string;
  /** Why the run was stopped before it started; null if it was not. */
  stopped: string | null;
  overBudget: boolean;
}

/** A started program, as the host sees it. */
export interface HostedProcess extends Pick<Running, "pid" | "withheld"> {
  id: number;
  streams: { stdin: boolean; stdout: boolean; stderr: boolean };
}

/** The result of a process with times as JSON strings. */
export type SerializedEnd = Omit<Ended, "startTime" | "endTime"> & { startTime: string; endTime: string };

const maxLineBytes = 64 * 1024 * 1024;

// stdout carries the protocol, so what a module prints goes to stderr and from there to the run's log
const toRunner = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
// without the runner there is nothing to run for
for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on("error", () => process.exit(1));

const stopping = new AbortController();
const overBudget = new AbortController();
const input = createInputQueue();
const files = new Map<number, FoundFile>();
const handles = new Map<number, OpenFile>();
let lastHandle = 0;

const peer: Peer = connectPeer({
  lines: readLines(process.stdin, maxLineBytes),
  write: (line) => void toRunner(line),
  onUnknownLine: (text) => void process.stderr.write(`not a message from the runner: ${text.slice(0, 200)}\n`),
  handlers: {
    async describe(url: string, config: Record<string, unknown>) {
      const { name, can, variables } = await load(url, config);
      return { name, can, ...(variables === undefined ? {} : { variables }) };
    },
    async run(url: string, config: Record<string, unknown>, run: HostedRun) {
      if (run.stopped !== null) stopping.abort(run.stopped);
      if (run.overBudget) overBudget.abort();
      return (await load(url, config)).run(run.invocation, contextOf(run));
    },
    stop: (reason: string) => stopping.abort(reason),
    overBudget: () => overBudget.abort(),
    input: (given: UserInput) => input.push(given),
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
// the runner is done or gone, so timers of the module must not keep this process alive
void peer.closed.then(() => process.exit(0));

async function load(url: string, config: Record<string, unknown>): Promise<Executor> {
  const imported = (await import(url)) as object; // a module's exports are an object
  const create: unknown = Reflect.get(imported, "createExecutor");
  const executor: unknown =
    typeof create === "function"
      ? await (create as (config: unknown) => unknown)(config)
      : Reflect.get(imported, "executor");
  if (!isExecutor(executor)) throw new Error(wrongExport(imported));
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

function wrongExport(imported: object): string {
  const names = Object.keys(imported);
  const found = names.length === 0 ? "nothing" : names.join(", ");
  return `it must export \`executor\`, the return value of \`defineExecutor({ name, execute })\`, or a function \`createExecutor(config)\` that returns one; it exports ${found}`;
}

function contextOf({ dirs, runnerDirectory }: HostedRun): RunContext {
  /** Sends a call without waiting for its answer. This process exits once the runner is gone. */
  const notify = (method: string, ...args: unknown[]): void => void peer.call(method, ...args).catch(() => undefined);
  return {
    signal: stopping.signal,
    overBudget: overBudget.signal,
    emit: (event) => peer.call("emit", event),
    partial: (delta) => notify("partial", delta),
    ask: (question) => peer.call("ask", question),
    usage: (usage) => notify("usage", usage),
    input,
    start: async (command) => toRunning(await peer.call<HostedProcess>("start", command)),
    startHost: () => Promise.reject(new Error("an executor from a module already runs in a host")),
    async keepFiles(found) {
      files.clear();
      found.forEach((file, id) => files.set(id, file));
      return peer.call(
        "keepFiles",
        found.map(({ path, size }) => ({ path, size })),
      );
    },
    session: {
      async load() {
        const state = await peer.call<{ format: string; bytes: string; here: boolean } | null>("loadSession");
        return state && { ...state, bytes: Buffer.from(state.bytes, "base64") };
      },
      save: (format, bytes, more) =>
        peer.call("saveSession", format, Buffer.from(bytes).toString("base64"), more ?? {}),
    },
    dirs,
    runnerDirectory,
  };
}

function toRunning({ id, pid, withheld, streams }: HostedProcess): Running {
  const result = peer
    .call<SerializedEnd>("result", id)
    .then((ended): Ended => ({ ...ended, startTime: new Date(ended.startTime), endTime: new Date(ended.endTime) }));
  // a module that never awaits the result must not fail when this process exits first
  result.catch(() => undefined);
  return {
    pid,
    withheld,
    stdin: streams.stdin ? writer(id) : null,
    stdout: streams.stdout ? reader(id, "stdout") : null,
    stderr: streams.stderr ? reader(id, "stderr") : null,
    kill: (reason) => peer.call("kill", id, reason),
    result,
  };
}

/** Requests more only while the module reads, so that backpressure reaches the program. */
function reader(id: number, stream: OutputStream): Readable {
  return new Readable({
    read() {
      peer.call<string | null>("read", id, stream).then(
        (chunk) => this.push(chunk === null ? null : Buffer.from(chunk, "base64")),
        (error: Error) => this.destroy(error),
      );
    },
  });
}

function writer(id: number): Writable {
  const write = callbackify((chunk: Buffer) => peer.call<void>("write", id, chunk.toString("base64")));
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, callback) => write(chunk, callback),
    final: callbackify(() => peer.call<void>("endInput", id)),
  });
  // a program may exit without reading; its exit code says whether that was an error
  stdin.on("error", () => undefined);
  return stdin;
}
