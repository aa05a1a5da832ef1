import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

/** A process of this bench: it says one line when it is ready, one for each it is told, and ends when its stdin does. */
export interface Child {
  pid: number;
  ready: string;
  /** Tells it something and waits for its answer. */
  ask(line: string): Promise<string>;
  stop(): Promise<void>;
}

const started = new Set<ChildProcess>();
const folders = new Set<string>();
// nothing that was started or made outlives the bench, however it ends
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});
// each time: a Ctrl-C comes twice, from the terminal and from whoever started us
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

export function owned<T extends ChildProcess>(child: T): T {
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}

/** Removed with all that is in it when this process ends. */
export function ownedFolder(path: string): string {
  folders.add(path);
  return path;
}

export type Role =
  | "boss-worker"
  | "bull-worker"
  | "graphile-worker"
  | "no-database"
  | "one-write-per-event"
  | "simulated-runners"
  | "sse-readers";

/** This very script again, in another part. */
export function startRole(role: Role, options: unknown): Promise<Child> {
  return startChild(process.execPath, [process.argv[1] ?? "", process.argv[2] ?? "", role, JSON.stringify(options)]);
}

async function startChild(file: string, args: readonly string[]): Promise<Child> {
  const child = owned(spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] }));
  const next = lines(child, args[2] ?? file);
  return {
    pid: child.pid ?? 0,
    ready: await next(),
    ask(line) {
      child.stdin.write(`${line}\n`);
      return next();
    },
    stop: () => stopChild(child),
  };
}

/** What a role does when it is ready, and how it learns what is wanted, and that it is no longer wanted. */
export function announce(line: string, orders: Record<string, () => Promise<unknown>> = {}): void {
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const input = createInterface({ input: process.stdin });
  input.on("line", (order) => {
    const done = orders[order]?.() ?? Promise.reject(new Error(`no such order: ${order}`));
    done.then(
      () => say("done"),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  });
  input.once("close", () => process.exit(0));
  say(line);
}

export function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const late = setTimeout(() => child.kill("SIGKILL"), 5000);
    child.once("exit", () => {
      clearTimeout(late);
      resolve();
    });
    child.stdin?.end();
    child.kill("SIGTERM");
  });
}

/** One line at a time, in the order in which they are asked for. */
function lines(child: ChildProcess, what: string): () => Promise<string> {
  const said: string[] = [];
  let waiting: { resolve(line: string): void; reject(error: Error): void } | null = null;
  let fault: Error | null = null;
  const fails = (error: Error): void => {
    fault = error;
    waiting?.reject(error);
  };
  child.once("error", fails);
  child.stdin?.on("error", fails);
  child.once("exit", (code, signal) => fails(new Error(`${what} ended (${signal ?? code}) when it was needed`)));
  createInterface({ input: child.stdout! }).on("line", (line) => {
    if (waiting === null) said.push(line);
    else waiting.resolve(line);
    waiting = null;
  });
  return () =>
    new Promise((resolve, reject) => {
      const line = said.shift();
      if (line !== undefined) resolve(line);
      else if (fault !== null) reject(fault);
      else waiting = { resolve, reject };
    });
}
