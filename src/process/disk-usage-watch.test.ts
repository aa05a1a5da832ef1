import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { keepAll } from "../../test/fixtures/process/capture.ts";
import type { CommandFault, CommandResult, Limits, StartCommand, StartOptions } from "../model/process.ts";
import { createExecute } from "./execute.ts";
import { measureInitialUsage, watchDiskUsage } from "./disk-usage-watch.ts";
import { createStart, start } from "./start.ts";

const testRoot = mkdtempSync(join(tmpdir(), "drover-watch-"));
afterAll(() => rmSync(testRoot, { recursive: true, force: true }));
let directory = "";
beforeEach(() => (directory = mkdtempSync(join(testRoot, "d-"))));

interface RunOptions {
  startCommand?: StartCommand;
  options?: StartOptions;
  signal?: AbortSignal;
}

const runWith = (
  limits: Limits,
  script: string,
  { startCommand = start, options, signal }: RunOptions = {},
): Promise<CommandResult> =>
  createExecute(startCommand)(
    { executable: "sh", arguments: ["-c", script], limits, workingDirectory: directory, timeoutMs: 200_000 },
    { ...options, capture: keepAll },
    signal,
  );
const exceeded = (limit: string): object => ({ success: false, error: { code: "DROVER-EXE-009", limit } });
const touchScript = (names: string): string => `for i in ${names}; do : > $i; done`;

const diskBomb = "while :; do i=$((i+1)); head -c 100000 /dev/zero > $i; done";
const filesBomb = "while :; do i=$((i+1)); mkdir $i; : > $i/1; : > $i/2; ln -s $i link$i; done";

const startCommands: [string, StartCommand][] = [
  ["the launcher", start],
  ["perl", createStart({ launchMethods: ["perl"] })],
  ["a shell", createStart({ launchMethods: ["plain"] })],
];

describe.each(startCommands)("the disk limit of a command started by %s", (_, startCommand) => {
  test("stops a command that exceeds its disk limit, and reports the usage", async () => {
    const result = await runWith({ diskBytes: 2 << 20 }, diskBomb, { startCommand });
    expect(result).toMatchObject({ ...exceeded("diskBytes"), stopped: "disk_limit", timedOut: false });
    expect(result.error!.message).toMatch(
      /^The command exceeded its limit on disk space \(2097152 bytes\): it used at least \d{7,} bytes\. Raise the limit/,
    );
  });

  test("stops a command that creates files, directories and links without end", async () => {
    const result = await runWith({ files: 200 }, filesBomb, { startCommand });
    expect(result).toMatchObject({ ...exceeded("files"), stopped: "disk_limit" });
    expect(result.error!.message).toMatch(/its limit on files \(200\): it used at least \d{3,}\./);
  });
});

test("kills a command that ignores SIGTERM, and its children", async () => {
  const result = await runWith({ files: 50 }, `trap '' TERM; (${filesBomb}) & ${filesBomb}`, {
    options: { graceMs: 200 },
  });
  expect(result).toMatchObject({ ...exceeded("files"), signal: "SIGKILL" });
});

test("detects a limit that was exceeded faster than the watch checks", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] }); // No check comes due while the command runs, however slow the machine is.
  onTestFinished(() => void vi.useRealTimers());
  expect(await runWith({ files: 5 }, touchScript("1 2 3 4 5 6"))).toMatchObject({
    ...exceeded("files"),
    exitCode: 0,
    stopped: null,
  });
  expect(await runWith({ diskBytes: 1 << 20 }, "head -c 3000000 /dev/zero > big; exit 3")).toMatchObject({
    ...exceeded("diskBytes"),
    exitCode: 3,
    stopped: null,
  });
});

test("does not stop a command that stays within its limits", async () => {
  expect(await runWith({ files: 6, diskBytes: 1 << 20 }, touchScript("1 2 3 4 5 6"))).toMatchObject({ success: true });
  expect(await runWith({ files: 6 }, "exit 3")).toMatchObject({ exitCode: 3, error: { code: "DROVER-EXE-003" } });
});

test("does not count files that existed before, but counts those that replace them", async () => {
  for (let index = 0; index < 50; index += 1) writeFileSync(join(directory, `old-${index}`), Buffer.alloc(50_000, "x"));
  expect(await runWith({ files: 3, diskBytes: 1 << 20 }, touchScript("1 2 3"))).toMatchObject({ success: true });
  expect(await runWith({ files: 3 }, `rm old-1; ${touchScript("a b c d e")}`)).toMatchObject(exceeded("files"));
  expect(await runWith({ diskBytes: 1 << 20 }, "head -c 2000000 /dev/zero >> old-2")).toMatchObject(
    exceeded("diskBytes"),
  );
});

test("does not count excluded directories", async () => {
  mkdirSync(join(directory, ".drover"));
  const options = { uncounted: { folders: [join(directory, ".drover")] } };
  expect(await runWith({ files: 2 }, `cd .drover; ${touchScript("1 2 3 4 5")}`, { options })).toMatchObject({
    success: true,
  });
  expect(await runWith({ files: 2 }, `cd .drover; ${touchScript("a b c")}`)).toMatchObject(exceeded("files"));
});

test("counts nothing for a command that deletes its own directory", async () => {
  expect(await runWith({ files: 2 }, `rmdir "$PWD"`)).toMatchObject({ success: true });
});

test("reports a timeout, and not the limit, if the timeout came before the first check", async () => {
  const command = { executable: "sh", arguments: ["-c", `${touchScript("1 2 3")}; exec sleep 30`], timeoutMs: 50 };
  const result = await createExecute(start)(
    { ...command, workingDirectory: directory, limits: { files: 2 } },
    { capture: keepAll },
  );
  expect(result).toMatchObject({ stopped: "timeout", error: { code: "DROVER-EXE-002" } });
});

test("does not start a command that is stopped while its directory is measured", async () => {
  const result = await runWith({ files: 2 }, "touch ran", { signal: AbortSignal.abort("user") });
  expect(result).toMatchObject({ isolation: null, stopped: "user" });
});

test("rejects a disk limit before the start if the directory cannot be read", async () => {
  const directories = { roots: [join(directory, "none")], excluded: [] };
  expect(await measureInitialUsage(directories, { files: 1 }, new AbortController().signal)).toMatchObject({
    ok: false,
    fault: { code: "DROVER-EXE-008", limit: "files", message: expect.stringContaining("ENOENT") },
  });
});

test("reports a fault after repeated failed checks", async () => {
  const fault = await new Promise<CommandFault>((resolve) => {
    // An invalid path, so that every check fails.
    const roots = ["no\0path"];
    watchDiskUsage({
      roots,
      excluded: [],
      limits: { diskBytes: 1 },
      initialUsage: { bytes: 0, files: 0 },
      onFault: resolve,
    });
  });
  expect(fault).toMatchObject({ code: "DROVER-EXE-008", limit: "diskBytes" });
});
