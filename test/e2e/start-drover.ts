import { type ChildProcess, spawn } from "node:child_process";
import { afterEach } from "vitest";
import { bin, homeFolder, trusted } from "./drover.ts";

/** A process of Drover that is to be killed and started again. */
export interface Process {
  readonly pid: number;
  readonly said: string;
  /** Its exit code; null where the signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

const living: Process[] = [];
afterEach(async () => {
  for (const one of living.splice(0).toReversed()) await one.end("SIGKILL");
});

interface StartOptions {
  cwd: string;
  env: Readonly<Record<string, string>>;
  ready: RegExp;
  /** Words before the command. */
  through?: readonly string[];
  uid?: number | undefined;
}

/** Resolves once it has said `ready` on stderr. */
export function startDrover(
  args: readonly string[],
  { cwd, env, ready, through = [], uid }: StartOptions,
): Promise<Process> {
  const [file, ...words] = [...through, process.execPath, bin, ...args];
  const child = spawn(file!, words, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: homeFolder(), DROVER_TRUST: trusted, ...env },
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let said = "";
  const one: Process = {
    pid: child.pid ?? 0,
    get said() {
      return said;
    },
    end: (signal) => endOfChild(child, signal),
  };
  living.push(one);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => reject(new Error(`drover ${args.join(" ")} ended: ${said}`)));
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
      if (ready.test(said)) resolve(one);
    });
  });
}

function endOfChild(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((done) => {
    child.once("close", (code) => done(code));
    child.kill(signal);
  });
}
