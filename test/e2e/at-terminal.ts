import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it, onTestFinished } from "vitest";
import { bin, folder, homeFolder, trusted } from "./drover.ts";

/** util-linux's `script` gives a real terminal; without it there is none. */
export const onTerminal = it.runIf(process.platform === "linux" && spawnSync("script", ["--version"]).status === 0);

export const keys = { ctrlC: "\u0003", ctrlD: "\u0004", up: "\u001b[A", enter: "\r", escape: "\u001b" };

export interface Terminal {
  cwd: string;
  press(keys: string): void;
  /** Everything that was ever written to it, with its control sequences. */
  shown(): string;
  /** What came since the last look at it, once it has all of these words, in any order. */
  see(...words: string[]): Promise<string>;
  until(holds: () => boolean): Promise<void>;
  exitCode: Promise<number | null>;
  pid(): number;
}

interface Options {
  cwd?: string;
  env?: Record<string, string>;
  columns?: number;
}

/** The real command line at a terminal of its own. */
export function atTerminal(
  args: readonly string[],
  { cwd = folder(), env = {}, columns = 100 }: Options = {},
): Terminal {
  const pidFile = join(folder(), "pid");
  const line = `stty cols ${columns} rows 40; echo $$ >"$PID_FILE"; exec "$NODE" "$BIN" ${args.map(quoted).join(" ")}`;
  const child: ChildProcess = spawn("script", ["-qec", line, "/dev/null"], {
    cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: homeFolder(),
      DROVER_TRUST: trusted,
      TERM: "xterm-256color",
      SHELL: "/bin/sh",
      NODE: process.execPath,
      BIN: bin,
      PID_FILE: pidFile,
      ...env,
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // it may have ended when a key is pressed
  child.stdin?.on("error", () => undefined);
  let text = "";
  let seen = 0;
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  const pid = (): number => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : 0);
  onTestFinished(() => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    if (pid() > 0) process.kill(pid(), "SIGKILL");
    child.kill("SIGKILL");
  });
  const until = async (holds: () => boolean): Promise<void> => {
    const deadline = Date.now() + 120_000;
    while (!holds()) {
      if (Date.now() > deadline) throw new Error(`It did not come about. The terminal shows: ${text}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return {
    cwd,
    pid,
    until,
    press: (pressed) => void child.stdin?.write(pressed),
    shown: () => text,
    async see(...words) {
      await until(() => words.every((word) => plain(text.slice(seen)).includes(word)));
      const found = plain(text.slice(seen));
      seen = text.length;
      return found;
    },
    exitCode: new Promise((resolve) => child.once("close", (code) => resolve(code))),
  };
}

/** Without colours and the moves of the cursor. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, "").replaceAll("\r", "");
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
