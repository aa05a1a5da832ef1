import { type ChildProcess, spawn } from "node:child_process";
import { pause } from "./wait.ts";

/** A process of ours that is to be killed, stopped, and in any case ended. */
export interface Child {
  readonly pid: number;
  readonly alive: boolean;
  /** All it said so far, on both streams. */
  readonly said: string;
  /** Resolves with what it said when this stands there; rejects where it ends before. */
  says(what: RegExp, withinMs?: number): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  readonly closed: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface Processes {
  start(words: readonly string[], options: { cwd: string; env: Record<string, string> }): Child;
  killAll(): void;
  /** The same, and waits for it. */
  endAll(): Promise<void>;
}

export function createProcesses(): Processes {
  const living = new Set<Child>();
  const killAll = (): void => {
    for (const child of living) {
      child.signal("SIGKILL");
      // one that was stopped dies as well, but what it said is read only when it goes on
      child.signal("SIGCONT");
    }
  };
  return {
    start([file = "", ...words], { cwd, env }) {
      const child = spawn(file, words, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
      const made = follow(child);
      living.add(made);
      void made.closed.then(() => living.delete(made));
      return made;
    },
    killAll,
    async endAll() {
      const left = [...living];
      killAll();
      await Promise.all(left.map(({ closed }) => closed));
    },
  };
}

/** Enough to tell why something went wrong. */
const kept = 20_000;

function follow(child: ChildProcess): Child {
  let said = "";
  let alive = true;
  const hear = (chunk: Buffer): void => void (said = (said + chunk.toString("utf8")).slice(-kept));
  child.stdout?.on("data", hear);
  child.stderr?.on("data", hear);
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
    get said() {
      return said;
    },
    async says(what, withinMs = 120_000) {
      for (const until = performance.now() + withinMs; ; await pause(10)) {
        const found = what.exec(said);
        if (found) return found;
        if (!alive || performance.now() > until)
          throw new Error(`${alive ? "In time it" : "It ended and"} did not say ${what.source}, but: ${said}`);
      }
    },
    signal: (signal) => void child.kill(signal),
    closed,
  };
}
