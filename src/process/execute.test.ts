import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bundle } from "../../test/fixtures/process/bundle.ts";
import { keepAll, toText } from "../../test/fixtures/process/capture.ts";
import { createMark, findSurvivors } from "../../test/fixtures/process/survivors.ts";
import type { CaptureOptions, Command, CommandResult, Redactor } from "../model/process.ts";
import { execute, type ExecuteOptions } from "./execute.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-execute-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const run = (
  script: string,
  capture: Partial<CaptureOptions> = {},
  options: Partial<ExecuteOptions> = {},
  commandOptions: Partial<Command> = {},
): Promise<CommandResult> =>
  execute(
    { executable: "sh", arguments: ["-c", script], ...commandOptions },
    { ...options, capture: { ...keepAll, ...capture } },
  );
const spillFiles = (): { stdout: string; stderr: string } => ({
  stdout: join(directory, "out"),
  stderr: join(directory, "err"),
});

test("returns the output, and whether the command succeeded or timed out", async () => {
  const result = await run("echo out; echo err >&2");
  expect(result).toMatchObject({ success: true, timedOut: false, exitCode: 0, error: null });
  expect([toText(result.stdout), toText(result.stderr)]).toEqual(["out\n", "err\n"]);
  expect(result.stdout).toMatchObject({ totalBytes: 4, truncated: false });
  expect(await run("exit 3")).toMatchObject({ success: false, timedOut: false, exitCode: 3 });
  expect(await run("sleep 60", {}, {}, { timeoutMs: 100 })).toMatchObject({
    success: false,
    timedOut: true,
    error: { code: "DROVER-EXE-002" },
  });
});

test("returns merged output in stdout", async () => {
  const result = await run("echo 1; echo 2 >&2; echo 3", { mode: "merged" });
  expect([toText(result.stdout), result.stderr.totalBytes]).toEqual(["1\n2\n3\n", 0]);
});

test("mode none keeps and counts nothing", async () => {
  expect((await run("echo x", { mode: "none" })).stdout).toMatchObject({ totalBytes: 0, truncated: false });
});

test("keeps the start and the end of output above the limit, and counts the rest", async () => {
  const result = await run("seq 1 200000", { maxBytes: 1000 });
  expect(result).toMatchObject({ success: true, stdout: { truncated: true, totalBytes: 1288895 } });
  expect(Buffer.from(result.stdout.head).toString()).toMatch(/^1\n2\n3\n/);
  expect(Buffer.from(result.stdout.tail).toString()).toMatch(/\n199999\n200000\n$/);
  expect(result.stdout.head.length + result.stdout.tail.length).toBe(1000);
});

test("stops the command at the output limit with onLimit fail", async () => {
  const result = await run("yes", { maxBytes: 10_000, onLimit: "fail" });
  expect(result).toMatchObject({
    success: false,
    stopped: "output_limit",
    error: { code: "DROVER-EXE-004", limit: "output" },
  });
  expect(result.stdout.truncated).toBe(true);
});

test("uses constant memory for 300 MB of output", async () => {
  await run("head -c 30000000 /dev/zero", { maxBytes: 100_000 });
  const before = process.memoryUsage().rss;
  let highest = 0;
  let chunks = 0;
  const result = await run("head -c 300000000 /dev/zero", {
    maxBytes: 100_000,
    onOutput: () => {
      chunks += 1;
      if (chunks % 100 === 0) highest = Math.max(highest, process.memoryUsage().rss);
    },
  });
  expect(result.stdout.totalBytes).toBe(300_000_000);
  expect(highest - before).toBeLessThan(150_000_000);
});

test("returns bytes that are not UTF-8 unchanged", async () => {
  const result = await run("printf '\\377\\376\\000\\200abc'");
  expect([...result.stdout.head]).toEqual([0xff, 0xfe, 0, 0x80, 0x61, 0x62, 0x63]);
});

test("passes every byte to onOutput in order, and waits for its promise", async () => {
  let inFlight = 0;
  let maxInFlight = 0;
  const received: string[] = [];
  const result = await run("for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.005; done", {
    onOutput: async (stream, chunk) => {
      inFlight += 1;
      maxInFlight = Math.max(maxInFlight, inFlight);
      await new Promise((resolve) => setTimeout(resolve, 15));
      received.push(`${stream}:${Buffer.from(chunk).toString()}`);
      inFlight -= 1;
    },
  });
  expect(result).toMatchObject({ exitCode: 0, error: null, stdout: { totalBytes: 18 } });
  expect(maxInFlight).toBe(1);
  expect(received.join("").replaceAll("stdout:", "")).toBe("1\n2\n3\n4\n5\n6\n7\n8\n9\n");
});

test("does not wait for onOutput after a timeout", async () => {
  const result = await run(
    "yes",
    { onOutput: () => new Promise<void>(() => undefined) },
    { graceMs: 200 },
    { timeoutMs: 200 },
  );
  expect(result).toMatchObject({ timedOut: true });
});

test("stops the command and rejects if onOutput throws", async () => {
  for (const onOutput of [failsLater, failsAtOnce]) {
    const mark = createMark();
    await expect(
      execute({ executable: "yes", arguments: [mark] }, { capture: { ...keepAll, onOutput } }),
    ).rejects.toThrow("broken");
    expect(findSurvivors(mark)).toEqual([]);
  }
});

test("writes complete streams to spill files that only their owner can read", async () => {
  const spill = spillFiles();
  const result = await run("seq 1 100000; echo err >&2", { maxBytes: 100, spill });
  expect(result).toMatchObject({ success: true, stdout: { truncated: true } });
  expect(readFileSync(spill.stdout, "utf8")).toBe(
    Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(""),
  );
  expect(readFileSync(spill.stderr, "utf8")).toBe("err\n");
  expect(statSync(spill.stdout).mode & 0o777).toBe(0o600);
});

test("mode file keeps nothing in memory and reports no truncation", async () => {
  const result = await run("seq 1 1000", { mode: "file", maxBytes: 10, spill: spillFiles() });
  expect(result.stdout).toMatchObject({ totalBytes: 3893, truncated: false });
  expect(result.stdout.head.length).toBe(0);
  expect(statSync(spillFiles().stdout).size).toBe(3893);
});

test("redacts spill files but not the result", async () => {
  const redactor = {
    stream: () => ({
      push: (chunk: Uint8Array) => Buffer.from(Buffer.from(chunk).toString().toUpperCase()),
      end: () => Buffer.from("!"),
    }),
  };
  // Only the stream is used here.
  const result = await run("echo secret", { spill: spillFiles(), redactor: redactor as unknown as Redactor });
  expect(toText(result.stdout)).toBe("secret\n");
  expect(readFileSync(spillFiles().stdout, "utf8")).toBe("SECRET\n!");
});

test("starts nothing and leaves no file if a spill file already exists", async () => {
  writeFileSync(spillFiles().stderr, "mine");
  const result = await run(`touch ${directory}/started`, { spill: spillFiles() });
  expect(result).toMatchObject({ success: false, isolation: null, stopped: null, error: { code: "DROVER-EXE-010" } });
  expect(result.error?.message).toContain(spillFiles().stderr);
  expect(existsSync(join(directory, "started"))).toBe(false);
  expect(existsSync(spillFiles().stdout)).toBe(false);
  expect(readFileSync(spillFiles().stderr, "utf8")).toBe("mine");
});

test("creates no spill file for an invalid command", async () => {
  await expect(execute({ executable: "" }, { capture: { ...keepAll, spill: spillFiles() } })).rejects.toMatchObject({
    code: "DROVER-USE-002",
  });
  expect(existsSync(spillFiles().stdout)).toBe(false);
});

test("stops the command if a spill file cannot be written, and reports its path", async () => {
  // Simulate a full disk with a limit on the size of this process's files.
  const fixture = bundle("spill-full.ts", directory);
  const ended = spawnSync("sh", ["-c", 'ulimit -f 64; exec "$@"', "sh", process.execPath, fixture, directory], {
    encoding: "utf8",
  });
  expect(ended.stderr).toBe("");
  const result = JSON.parse(ended.stdout);
  expect(result).toMatchObject({ success: false, error: { code: "DROVER-EXE-010" } });
  expect(result.error.message).toContain(join(directory, "spilled"));
  expect(result.error.message).toContain("EFBIG");
});

test("returns a result for an unknown command instead of throwing", async () => {
  expect(await execute({ executable: "no-such-command-anywhere" }, { capture: keepAll })).toMatchObject({
    success: false,
    exitCode: null,
    error: { code: "DROVER-EXE-001" },
    stdout: { totalBytes: 0 },
  });
});

function failsLater(): Promise<void> {
  return Promise.reject(new Error("broken"));
}

function failsAtOnce(): void {
  throw new Error("broken");
}
