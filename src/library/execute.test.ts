import { spawnSync } from "node:child_process";
import { afterEach, expect, it } from "vitest";
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, execute, start } from "../index.ts";
import type { Command } from "../model/process.ts";

const createdDirectories: string[] = [];
afterEach(() => {
  for (const directory of createdDirectories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function createDirectory(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-execute-")));
  createdDirectories.push(directory);
  return directory;
}

it.each<[string | Command, string, string, number]>([
  ["printf hello", "hello", "", 0],
  ["echo out; echo err >&2; exit 3", "out\n", "err\n", 3],
  [{ executable: "printf", arguments: ["%s", "a b"] }, "a b", "", 0],
])("runs %j until it exits and returns its output", async (command, stdout, stderr, exitCode) => {
  for (const record of [true, false]) {
    const result = await execute(command, { record, stateDir: join(createDirectory(), "state") });
    expect(result).toMatchObject({ stdout, stderr, exitCode, success: exitCode === 0, signal: null, stopped: null });
    expect(result.runId).toEqual(record ? expect.any(String) : null);
  }
});

it("records the command, with its output, unless `record` is false", async () => {
  const directory = createDirectory();
  const stateDir = join(directory, "state");
  const { runId } = await execute("echo on the record", { stateDir, cwd: directory, env: { SOME: "thing" } });
  const unrecorded = await execute("pwd; echo $SOME", {
    stateDir,
    cwd: directory,
    env: { SOME: "thing" },
    record: false,
  });
  expect(unrecorded.stdout).toBe(`${directory}\nthing\n`);
  await using drover = await connect({ stateDir });
  expect((await drover.runs.list()).items).toMatchObject([{ run_id: runId, agent_name: "exec", status: "completed" }]);
  expect(await drover.runs.get(runId!)).toMatchObject({ result_text: "on the record\n", project_dir: directory });
  expect((await drover.executions.list()).items).toMatchObject([{ start: { argv: ["echo", "on", "the", "record"] } }]);
});

it("does not create a state directory for an invalid command or an unrecorded one", async () => {
  const directory = createDirectory();
  const stateDir = join(directory, "state");
  await expect(execute("", { stateDir })).rejects.toMatchObject({ code: "DROVER-USE-002" });
  await expect(execute("true", { stateDir, cwd: join(directory, "gone") })).rejects.toMatchObject({
    code: "DROVER-USE-003",
  });
  await execute("true", { stateDir, record: false });
  expect(readdirSync(directory)).toEqual([]);
});

it("stops a command after timeoutMs, and on abort, and records both", async () => {
  const stateDir = join(createDirectory(), "state");
  expect(await execute("sleep 600", { stateDir, timeoutMs: 50 })).toMatchObject({ timedOut: true, success: false });
  const controller = new AbortController();
  const onOutput = (): void => controller.abort();
  const stoppedResult = await execute("echo started; sleep 600", {
    stateDir,
    signal: controller.signal,
    capture: { onOutput },
  });
  expect(stoppedResult).toMatchObject({ stopped: "user", success: false });
  await using drover = await connect({ stateDir });
  expect((await drover.runs.list()).items).toMatchObject([
    { status: "cancelled" },
    { status: "failed", reason: "timeout" },
  ]);
});

it("captures at most `maxBytes` of output, and looks for programs on the PATH of the parent environment", async () => {
  const result = await execute("printf 0123456789", { capture: { maxBytes: 4, mode: "merged" }, record: false });
  expect(result.exitCode).toBe(0);
  expect(result.captured.stdout).toMatchObject({ totalBytes: 10, truncated: true });
  expect(result.stdout).toContain("6 bytes not kept");
  const notFound = await execute("no-such-program", { parentEnvironment: { PATH: "/nowhere" }, record: false });
  expect(notFound.exitCode).not.toBe(0);
});

it("stops the command and everything it started when the signal is aborted", async () => {
  const controller = new AbortController();
  // The process ids that the command sees may be those of a namespace, so the child is found by its argument.
  const seconds = `600.${process.pid}${Math.random().toString().slice(2)}`;
  const running = start(`sh -c 'sleep ${seconds} & echo started; wait'`, { signal: controller.signal });
  await new Promise((resolve) => running.stdout!.once("data", resolve));
  await expect.poll(() => listRunning(seconds)).toContain(`sleep ${seconds}`);
  controller.abort();
  expect(await running.result).toMatchObject({ exitCode: null, signal: expect.stringMatching(/^SIG/) });
  expect(() => process.kill(running.pid!, 0)).toThrow("ESRCH");
  expect(listRunning(seconds)).toEqual([]);
});

/** The command lines of running processes that contain the text. Zombies have none. */
function listRunning(text: string): string[] {
  const { stdout } = spawnSync("ps", ["-ww", "-eo", "args="], { encoding: "utf8" });
  return stdout.split("\n").filter((line) => line.includes(text));
}

it.each<[string, unknown[]]>([
  ["options", ["true", null]],
  ["signal", ["true", { signal: "now" }]],
  ["record", ["true", { record: "no" }]],
  ["stateDir", ["true", { stateDir: 7 }]],
  ["cwd", ["true", { cwd: 7 }]],
  ["capture.maxBytes", ["true", { capture: { maxBytes: -1 } }]],
  ["capture.mode", ["true", { capture: { mode: "some" } }]],
  ["capture.onLimit", ["true", { capture: { onLimit: "shrug" } }]],
])("rejects a wrong %s with its name and an example call", async (field, args) => {
  // A caller in plain JavaScript can do this.
  const rejected = execute(...(args as Parameters<typeof execute>));
  await expect(rejected).rejects.toMatchObject({
    code: "DROVER-USE-001",
    field,
    next: expect.stringContaining("execute("),
  });
});
