import { type ChildProcess, spawn } from "node:child_process";
import { pause } from "./wait.ts";

/** A child process that can be killed or frozen, and is always ended in the end. */
export interface Child {
  readonly pid: number;
  readonly alive: boolean;
  /** Its output so far, stdout and stderr. */
  readonly output: string;
  /** Resolves with the match once the output matches. Rejects if the process exits first. */
  waitForOutput(what: RegExp, withinMs?: number): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  readonly closed: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface Processes {
  start(args: readonly string[], options: { cwd: string; env: Record<string, string> }): Child;
  killAll(): void;
  /** Kills all processes and waits for them. */
  endAll(): Promise<void>;
}

export function createProcesses(): Processes {
  const living = new Set<Child>();
  const killAll = (): void => {
    for (const child of living) {
      child.signal("SIGKILL");
      // SIGKILL works on a stopped process too, but its output is only read after SIGCONT.
      child.signal("SIGCONT");
    }
  };
  return {
    start([file = "", ...args], { cwd, env }) {
      const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      const tracked = follow(child);
      living.add(tracked);
      void tracked.closed.then(() => living.delete(tracked));
      return tracked;
    },
    killAll,
    async endAll() {
      const remaining = [...living];
      killAll();
      await Promise.all(remaining.map(({ closed }) => closed));
    },
  };
}

/** Enough output to explain a failure. */
const maxOutput = 20_000;

function follow(child: ChildProcess): Child {
  let output = "";
  let alive = true;
  const append = (chunk: Buffer): void => void (output = (output + chunk.toString("utf8")).slice(-maxOutput));
  child.stdout?.on("data", append);
  child.stderr?.on("data", append);
  const closed = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => (alive = false));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  return {
    pid: child.pid ?? 0,
    get alive() {
      return alive;
    },
    get output() {
      return output;
    },
    async waitForOutput(pattern, withinMs = 120_000) {
      for (const deadline = performance.now() + withinMs; ; await pause(10)) {
        const found = pattern.exec(output);
        if (found) return found;
        if (!alive || performance.now() > deadline)
          throw new Error(
            `${alive ? "Timed out" : "The process ended"} before its output matched ${pattern.source}: ${output}`,
          );
      }
    },
    signal: (signal) => void child.kill(signal),
    closed,
  };
}
