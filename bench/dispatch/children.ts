import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

/** A process of this bench. It prints a line when ready and one per command, and exits when its stdin ends. */
export interface Child {
  pid: number;
  ready: string;
  /** Sends a command and waits for the answer. */
  ask(line: string): Promise<string>;
  stop(): Promise<void>;
}

const started = new Set<ChildProcess>();
const directories = new Set<string>();
// No process or directory outlives the bench, however it ends.
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
  for (const directory of directories)
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});
// Not `once`: Ctrl-C arrives twice, from the terminal and from the parent process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

export function owned<T extends ChildProcess>(child: T): T {
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}

/** Registers a directory to be removed when this process exits. */
export function ownedDirectory(path: string): string {
  directories.add(path);
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

/** Starts this script again in another role. */
export function startRole(role: Role, options: unknown): Promise<Child> {
  return startChild(process.execPath, [process.argv[1] ?? "", process.argv[2] ?? "", role, JSON.stringify(options)]);
}

async function startChild(file: string, args: readonly string[]): Promise<Child> {
  const child = owned(spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] }));
  const next = readLines(child, args[2] ?? file);
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

/** Called by a role when it is ready. Runs the commands it receives on stdin and exits when stdin ends. */
export function announce(line: string, commands: Record<string, () => Promise<unknown>> = {}): void {
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  const input = createInterface({ input: process.stdin });
  input.on("line", (command) => {
    const finished = commands[command]?.() ?? Promise.reject(new Error(`unknown command: ${command}`));
    finished.then(
      () => print("done"),
      (error: unknown) => {
        process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
        process.exit(1);
      },
    );
  });
  input.once("close", () => process.exit(0));
  print(line);
}

export function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const killTimer = setTimeout(() => child.kill("SIGKILL"), 5000);
    child.once("exit", () => {
      clearTimeout(killTimer);
      resolve();
    });
    child.stdin?.end();
    child.kill("SIGTERM");
  });
}

/** Reads one line per call, in order. */
function readLines(child: ChildProcess, what: string): () => Promise<string> {
  const lines: string[] = [];
  let waiting: { resolve(line: string): void; reject(error: Error): void } | null = null;
  let fault: Error | null = null;
  const fails = (error: Error): void => {
    fault = error;
    waiting?.reject(error);
  };
  child.once("error", fails);
  child.stdin?.on("error", fails);
  child.once("exit", (code, signal) => fails(new Error(`${what} exited (${signal ?? code}) while it was needed`)));
  createInterface({ input: child.stdout! }).on("line", (line) => {
    if (waiting === null) lines.push(line);
    else waiting.resolve(line);
    waiting = null;
  });
  return () =>
    new Promise((resolve, reject) => {
      const line = lines.shift();
      if (line !== undefined) resolve(line);
      else if (fault !== null) reject(fault);
      else waiting = { resolve, reject };
    });
}
