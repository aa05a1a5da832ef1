// A program: the process that an executor from a module runs in, so that it can be ended whatever it does. It is started
// by ./hosted.ts with the module's URL; stdin and stdout carry the calls of ./peer.ts.
import { Readable, Writable } from "node:stream";
import { callbackify } from "node:util";
import type { Executor, FoundFile, Invocation, OpenFile, RunContext, UserInput } from "../../../model/executor.ts";
import type { Ended, OutputStream, Running } from "../../../model/process.ts";
import { createInputQueue } from "../../supervise/input-queue.ts";
import { readLines } from "../lines.ts";
import { connectPeer, type Peer } from "./peer.ts";

/** What a run is begun with. */
export interface HostedRun {
  invocation: Invocation;
  dirs: RunContext["dirs"];
  runnerDirectory: string;
  /** Why it was stopped before it began; null where it was not. */
  stopped: string | null;
  overBudget: boolean;
}

/** A started program, as the host sees it. */
export interface HostedProcess extends Pick<Running, "pid" | "withheld"> {
  id: number;
  streams: { stdin: boolean; stdout: boolean; stderr: boolean };
}

/** As JSON carries it. */
export type SentEnd = Omit<Ended, "startTime" | "endTime"> & { startTime: string; endTime: string };

const maxLineBytes = 64 * 1024 * 1024;

// the pipe behind stdout is the protocol's: what a module prints goes to the run's log with stderr
const toRunner = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
// nobody is left to run for
for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on("error", () => process.exit(1));

const stopping = new AbortController();
const spent = new AbortController();
const input = createInputQueue();
const files = new Map<number, FoundFile>();
const handles = new Map<number, OpenFile>();
let lastHandle = 0;

const peer: Peer = connectPeer({
  lines: readLines(process.stdin, maxLineBytes),
  write: (line) => void toRunner(line),
  onStray: (text) => void process.stderr.write(`not a message of the runner: ${text.slice(0, 200)}\n`),
  handlers: {
    async describe(url: string, config: Record<string, unknown>) {
      const { name, can, variables } = await load(url, config);
      return { name, can, ...(variables === undefined ? {} : { variables }) };
    },
    async run(url: string, config: Record<string, unknown>, run: HostedRun) {
      if (run.stopped !== null) stopping.abort(run.stopped);
      if (run.overBudget) spent.abort();
      return (await load(url, config)).run(run.invocation, contextOf(run));
    },
    stop: (reason: string) => stopping.abort(reason),
    overBudget: () => spent.abort(),
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
// the runner has what it asked for, or is gone: timers and the like of the module must not keep this process
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
  return `it must export \`executor\`, which is what \`defineExecutor({ name, execute })\` returns, or a function \`createExecutor(config)\` that returns the same; it exports ${found}`;
}

function contextOf({ dirs, runnerDirectory }: HostedRun): RunContext {
  /** Of calls that nobody waits for: once the runner is gone this process ends. */
  const tell = (method: string, ...args: unknown[]): void => void peer.call(method, ...args).catch(() => undefined);
  return {
    signal: stopping.signal,
    overBudget: spent.signal,
    emit: (event) => peer.call("emit", event),
    partial: (delta) => tell("partial", delta),
    ask: (question) => peer.call("ask", question),
    usage: (usage) => tell("usage", usage),
    input,
    start: async (command) => toRunning(await peer.call<HostedProcess>("start", command)),
    startHost: () => Promise.reject(new Error("an executor from a module has its host already")),
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
    .call<SentEnd>("result", id)
    .then((ended): Ended => ({ ...ended, startTime: new Date(ended.startTime), endTime: new Date(ended.endTime) }));
  // a module that never asks how its program ended is not at fault when this process is ended first
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

/** Asks for more only while somebody reads: the program is held back as by its own pipe. */
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
  // a program may end without reading; how it ended tells whether that was a fault
  stdin.on("error", () => undefined);
  return stdin;
}
