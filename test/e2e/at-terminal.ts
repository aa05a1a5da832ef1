import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it, onTestFinished } from "vitest";
import { bin, createDirectory, getTestHome, trusted } from "./drover.ts";

/** Runs a test only where util-linux's `script` can provide a real terminal. */
export const terminalTest = it.runIf(process.platform === "linux" && spawnSync("script", ["--version"]).status === 0);

export const keys = { ctrlC: "\u0003", ctrlD: "\u0004", up: "\u001b[A", enter: "\r", escape: "\u001b" };

export interface Terminal {
  cwd: string;
  press(keys: string): void;
  /** Everything written to the terminal so far, including control sequences. */
  shown(): string;
  /** Waits until the output since the last call contains all of these words, in any order, and returns that output. */
  waitForText(...words: string[]): Promise<string>;
  waitUntil(holds: () => boolean): Promise<void>;
  exitCode: Promise<number | null>;
  pid(): number;
}

interface Options {
  cwd?: string;
  env?: Record<string, string>;
  columns?: number;
}

/** Starts the command line in its own terminal. */
export function openTerminal(
  args: readonly string[],
  { cwd = createDirectory(), env = {}, columns = 100 }: Options = {},
): Terminal {
  const pidFile = join(createDirectory(), "pid");
  const line = `stty cols ${columns} rows 40; echo $$ >"$PID_FILE"; exec "$NODE" "$BIN" ${args.map(quote).join(" ")}`;
  const child: ChildProcess = spawn("script", ["-qec", line, "/dev/null"], {
    cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: getTestHome(),
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
  // The process may have exited before a key is pressed.
  child.stdin?.on("error", () => undefined);
  let text = "";
  let seenLength = 0;
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  const pid = (): number => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : 0);
  onTestFinished(() => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    if (pid() > 0) process.kill(pid(), "SIGKILL");
    child.kill("SIGKILL");
  });
  const waitUntil = async (condition: () => boolean): Promise<void> => {
    const deadline = Date.now() + 120_000;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`Timed out. The terminal shows: ${text}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return {
    cwd,
    pid,
    waitUntil,
    press: (pressed) => void child.stdin?.write(pressed),
    shown: () => text,
    async waitForText(...words) {
      await waitUntil(() => words.every((word) => toPlainText(text.slice(seenLength)).includes(word)));
      const output = toPlainText(text.slice(seenLength));
      seenLength = text.length;
      return output;
    },
    exitCode: new Promise((resolve) => child.once("close", (code) => resolve(code))),
  };
}

/** Removes colours and cursor movements. */
function toPlainText(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, "").replaceAll("\r", "");
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
