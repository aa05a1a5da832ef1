import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A process of this bench: it says one line when it is ready, and ends when its stdin does. */
export interface Child {
  pid: number;
  ready: string;
  stop(): Promise<void>;
}

const started = new Set<ChildProcess>();
// nothing that was started outlives the bench, however it ends
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

export function owned<T extends ChildProcess>(child: T): T {
  started.add(child);
  child.once("exit", () => started.delete(child));
  return child;
}

export type Role = "bull-worker" | "no-database" | "one-write-per-event" | "sse-readers";

/** This very script again, in another part. */
export function startRole(role: Role, options: unknown): Promise<Child> {
  return startChild(process.execPath, [process.argv[1] ?? "", process.argv[2] ?? "", role, JSON.stringify(options)]);
}

async function startChild(file: string, args: readonly string[]): Promise<Child> {
  const child = owned(spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] }));
  const ready = await firstLine(child, `${file} ${args.slice(0, 4).join(" ")}`);
  return { pid: child.pid ?? 0, ready, stop: () => stopChild(child) };
}

/** What a role does when it is ready, and how it learns that it is no longer wanted. */
export function announce(line: string): void {
  process.stdout.write(`${line}\n`);
  process.stdin.resume().once("end", () => process.exit(0));
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

function firstLine(child: ChildProcess, what: string): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${what} ended with ${code} before it was ready`)));
    createInterface({ input: child.stdout! }).once("line", resolve);
  });
}
