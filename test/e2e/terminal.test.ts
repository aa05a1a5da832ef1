import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hostHas } from "../fixtures/process/host.ts";
import { bin, drover, createDirectory } from "./drover.ts";

// util-linux's `script` provides the real terminal that these tests need
const terminalTest = it.runIf(process.platform === "linux" && spawnSync("script", ["--version"]).status === 0);

const ctrlC = "\u0003";

terminalTest("Ctrl-C on a command that exits cancels the run with 130", async () => {
  const terminal = open("echo $$ >started; exec sleep 30");
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "started")));
  terminal.press(ctrlC);
  expect(await terminal.exitCode).toBe(130);
  expect(terminal.shown()).toContain("Press Ctrl-C again to kill");
  expect((await terminal.lastRun()).status).toBe("cancelled");
});

terminalTest("a command may handle the first Ctrl-C; the second one kills it", async () => {
  const terminal = open(
    "trap 'echo mine >>caught' INT; trap 'asked=1' TERM; echo $$ >started; while :; do sleep 0.05; echo $asked >>beats; done",
  );
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "started")));
  terminal.press(ctrlC);
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "caught")));
  terminal.press(ctrlC);
  expect(await terminal.exitCode).toBe(130);
  // Killed at once, without the two seconds of a graceful stop.
  expect(readFileSync(join(terminal.cwd, "beats"), "utf8").split("1").length).toBeLessThan(10);
  expect((await terminal.lastRun()).status).toBe("cancelled");
});

const typingTest = hostHas("pid") && spawnSync("perl", ["-e", "1"]).status === 0 ? terminalTest : it.skip;

typingTest("a command cannot type into the terminal that it shares with the shell", async () => {
  const terminal = open(
    `exec perl -e 'open T, "+<", "/dev/tty"; print ioctl(T, 0x5412, my $key = "x") ? "typed" : "refused: $!"'`,
  );
  expect(await terminal.exitCode).toBe(0);
  expect(terminal.shown()).toContain("refused: Operation not permitted");
});

terminalTest("a command that handles Ctrl-C continues", async () => {
  const terminal = open(
    "trap 'echo mine >>caught' INT; echo $$ >started; while ! [ -e enough ]; do sleep 0.1; echo >>beats; done",
  );
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "started")));
  terminal.press(ctrlC);
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "caught")));
  // Longer than the time after which a command that did not receive the signal is stopped.
  const file = join(terminal.cwd, "beats");
  // The command may not have written the first one yet.
  const beats = () => (existsSync(file) ? readFileSync(file, "utf8").length : 0);
  const beatsBefore = beats();
  await terminal.waitUntil(() => beats() > beatsBefore + 30);
  writeFileSync(join(terminal.cwd, "enough"), "");
  expect(await terminal.exitCode).toBe(0);
  expect((await terminal.lastRun()).status).toBe("completed");
});

terminalTest("a SIGINT sent only to Drover stops a command that did not receive it", async () => {
  const terminal = open("echo $$ >started; exec sleep 30");
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "started")));
  await terminal.waitUntil(() => existsSync(join(terminal.cwd, "pid")));
  process.kill(Number(readFileSync(join(terminal.cwd, "pid"), "utf8")), "SIGINT");
  expect(await terminal.exitCode).toBe(130);
  expect((await terminal.lastRun()).status).toBe("cancelled");
});

terminalTest("prints complete rows on a terminal of unknown width", async () => {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  await drover(["exec", "echo hello"], { cwd, env });
  const command = ["script", "-qec", 'stty cols 0; exec "$NODE" "$BIN" runs list', "/dev/null"];
  const [file, ...args] = command;
  const { stdout } = spawnSync(file!, args, {
    cwd,
    env: { ...process.env, ...env, NODE: process.execPath, BIN: bin },
    encoding: "utf8",
  });
  expect(stdout).toContain("STATUS");
  expect(stdout).toContain("echo hello");
});

/** Runs `drover exec SCRIPT` in its own terminal. The file `pid` contains Drover's process id. */
function open(script: string) {
  const cwd = createDirectory();
  const env = { DROVER_STATE_DIR: join(cwd, "state") };
  const line = 'echo $$ >pid; exec "$NODE" "$BIN" exec --shell "$SCRIPT"';
  const child: ChildProcess = spawn("script", ["-qec", line, "/dev/null"], {
    cwd,
    env: { ...process.env, ...env, SHELL: "/bin/sh", NODE: process.execPath, BIN: bin, SCRIPT: script },
    stdio: ["pipe", "pipe", "pipe"],
  });
  // It may have ended when a key is pressed.
  child.stdin?.on("error", () => undefined);
  onTestFinished(() => endDrover(child, join(cwd, "pid")));
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
  return {
    cwd,
    press: (key: string) => child.stdin?.write(key),
    shown: () => text,
    exitCode: new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code))),
    async waitUntil(condition: () => boolean): Promise<void> {
      const deadline = Date.now() + 120_000;
      while (!condition()) {
        if (Date.now() > deadline) throw new Error(`Timed out. The terminal shows: ${text}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async lastRun(): Promise<{ status: string }> {
      const { stdout } = await drover(["runs", "list", "--limit", "1", "--json"], { cwd, env });
      // The format in which the command line prints a run.
      return JSON.parse(stdout) as { status: string };
    },
  };
}

/** Cleans up after a failed test. When Drover dies its command dies too, and `script` exits. */
function endDrover(child: ChildProcess, pidFile: string): void {
  if (child.exitCode !== null || child.signalCode !== null) return;
  if (existsSync(pidFile)) process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
  child.kill("SIGKILL");
}
