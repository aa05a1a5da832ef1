import { type ChildProcess, spawn } from "node:child_process";
import { afterEach } from "vitest";
import { bin, getTestHome, trusted } from "./drover.ts";

/** A Drover process that a test kills and starts again. */
export interface DroverProcess {
  readonly pid: number;
  readonly output: string;
  /** Resolves with its exit code, or null if the signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

const running: DroverProcess[] = [];
afterEach(async () => {
  for (const drover of running.splice(0).toReversed()) await drover.end("SIGKILL");
});

interface StartOptions {
  cwd: string;
  env: Readonly<Record<string, string>>;
  ready: RegExp;
  /** Words before the command. */
  commandPrefix?: readonly string[];
  uid?: number | undefined;
}

/** Resolves once its stderr matches `ready`. */
export function startDrover(
  args: readonly string[],
  { cwd, env, ready, commandPrefix = [], uid }: StartOptions,
): Promise<DroverProcess> {
  const [file, ...words] = [...commandPrefix, process.execPath, bin, ...args];
  const child = spawn(file!, words, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: getTestHome(), DROVER_TRUST: trusted, ...env },
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let output = "";
  const drover: DroverProcess = {
    pid: child.pid ?? 0,
    get output() {
      return output;
    },
    end: (signal) => endChild(child, signal),
  };
  running.push(drover);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => reject(new Error(`drover ${args.join(" ")} ended: ${output}`)));
    child.stderr?.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
      if (ready.test(output)) resolve(drover);
    });
  });
}

function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((done) => {
    child.once("close", (code) => done(code));
    child.kill(signal);
  });
}
