import { expect, it } from "vitest";
import { execute, start } from "../index.ts";
import type { Command } from "../model/process.ts";

const text = ({ head }: { head: Uint8Array }): string => Buffer.from(head).toString();

it.each<[string | Command, string, string, number]>([
  ["printf hello", "hello", "", 0],
  ["echo out; echo err >&2; exit 3", "out\n", "err\n", 3],
  [{ executable: "printf", arguments: ["%s", "a b"] }, "a b", "", 0],
])("runs %j to its end and returns what it wrote", async (command, stdout, stderr, exitCode) => {
  const result = await execute(command);
  expect([text(result.stdout), text(result.stderr), result.exitCode]).toEqual([stdout, stderr, exitCode]);
  expect([result.signal, result.stopped]).toEqual([null, null]);
});

it("captures as much output as requested and finds programs on the given PATH", async () => {
  const result = await execute("printf 0123456789", { capture: { maxBytes: 4, mode: "merged" } });
  expect(result.exitCode).toBe(0);
  expect(result.stdout.totalBytes).toBe(10);
  expect(result.stdout.truncated).toBe(true);
  const elsewhere = await execute("no-such-program", { parentEnvironment: { PATH: "/nowhere" } });
  expect(elsewhere.exitCode).not.toBe(0);
});

it("stops the command and everything it started when the signal is aborted", async () => {
  const stop = new AbortController();
  const running = start("sh -c 'echo started; sleep 600'", {}, stop.signal);
  await new Promise((resolve) => running.stdout!.once("data", resolve));
  stop.abort();
  expect(await running.result).toMatchObject({ exitCode: null, signal: expect.stringMatching(/^SIG/) });
  expect(() => process.kill(running.pid!, 0)).toThrow("ESRCH");
});

it.each<[string, unknown[]]>([
  ["options", ["true", null]],
  ["signal", ["true", {}, "now"]],
  ["capture.maxBytes", ["true", { capture: { maxBytes: -1 } }]],
  ["capture.mode", ["true", { capture: { mode: "some" } }]],
  ["capture.onLimit", ["true", { capture: { onLimit: "shrug" } }]],
])("refuses a wrong %s by name, and says how it is called", async (field, given) => {
  // a caller in plain JavaScript can do this
  const refused = execute(...(given as Parameters<typeof execute>));
  await expect(refused).rejects.toMatchObject({
    code: "DROVER-USE-001",
    field,
    next: expect.stringContaining("execute("),
  });
});
