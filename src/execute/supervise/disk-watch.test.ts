import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { waitForOutcome, poll, prepareRunners, sh } from "../../../test/fixtures/execute/registered.ts";
import { prepareShellRunners } from "../../../test/fixtures/execute/shell-runners.ts";
import { watchDisk } from "./disk-watch.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";

const { setUp } = prepareShellRunners();
const runners = prepareRunners();

const fillDisk = (directory: string): string =>
  `echo started; cd "${directory}"; while :; do i=$((i+1)); head -c 100000 /dev/zero > f$i; done`;
const makeFiles = (directory: string): string =>
  `echo started; cd "${directory}"; while :; do i=$((i+1)); : > n$i; sleep 0.001; done`;
const limitFailure = (limit: string) => ({
  status: "failed",
  reason: "limit_exceeded",
  message: expect.stringMatching(
    new RegExp(`^(?=.*: it used at least \\d)The run exceeded its limit on ${limit}.*\\. Raise the limit`),
  ),
});

test("stops a run that fills its work directory, with its execution", async () => {
  const { coordinator, directory, submit, waitForEnd } = await setUp();
  const run = submit(fillDisk("."), {}, { limits: { disk_bytes: 2_000_000 } });
  expect(await waitForEnd(run)).toMatchObject({ ...limitFailure("disk space \\(2000000 bytes\\)"), text: "started\n" });
  expect(
    coordinator.events(run).flatMap((event) => (event.type === "execution_ended" ? [event.execution] : [])),
  ).toEqual([
    expect.objectContaining({ stopped: "disk_limit", error: expect.objectContaining({ code: "DROVER-EXE-009" }) }),
  ]);
  // The files that filled the disk are not uploaded.
  expect(coordinator.events(run).filter(({ type }) => type === "file")).toEqual([]);
  expect(existsSync(join(directory, "work", run, "f1"))).toBe(true);
});

test.each([
  ["its temporary directory", "$TMPDIR"],
  ["its own HOME", "$HOME"],
])("counts files in %s too", async (_, directory) => {
  const { submit, waitForEnd } = await setUp({}, true);
  expect(await waitForEnd(submit(makeFiles(directory), {}, { limits: { files: 50 } }))).toMatchObject(
    limitFailure("files \\(50\\)"),
  );
});

test("counts only the growth of a shared directory, without Drover's own files in it", async () => {
  const { directory, submit, waitForEnd } = await setUp();
  const project_dir = join(directory, "project");
  mkdirSync(project_dir);
  for (let index = 0; index < 60; index += 1) writeFileSync(join(project_dir, String(index)), "");
  const agent = { limits: { files: 20, disk_bytes: 10_000_000 } };
  expect(await waitForEnd(submit("touch a b c; ls | wc -l", { project_dir }, agent))).toMatchObject({
    status: "completed",
    text: "63\n",
  });
  expect(await waitForEnd(submit(makeFiles("."), { project_dir }, agent))).toMatchObject(
    limitFailure("files \\(20\\)"),
  );
  expect(readdirSync(project_dir).length).toBeGreaterThan(80);
});

test("fails a run that exceeded its limit faster than the watch checks", async () => {
  const { submit, waitForEnd } = await setUp();
  expect(await waitForEnd(submit("exec touch 1 2 3 4", {}, { limits: { files: 3 } }))).toMatchObject(
    limitFailure("files \\(3\\): it used at least 4"),
  );
});

test("keeps the text of a run that the final check finds over its limit", async () => {
  const { directory } = await setUp();
  const watchedDirectory = join(directory, "watched");
  mkdirSync(watchedDirectory);
  const watchResult = await watchDisk({
    limits: { files: 3 },
    writtenDirectories: { owned: [watchedDirectory], shared: [] },
    excluded: [],
    signal: new AbortController().signal,
    onExceeded: () => undefined,
  });
  // The watch cannot run between this and applyLimit(), which stops it.
  for (const name of ["1", "2", "3", "4"]) writeFileSync(join(watchedDirectory, name), "");
  const outcome =
    watchResult.ok && (await watchResult.watch.applyLimit({ status: "completed", exit_code: 0, text: "done\n" }));
  expect(outcome).toMatchObject({ ...limitFailure("files \\(3\\): it used at least 4"), text: "done\n" });
});

test("counts the files of earlier runs when a session is resumed", async () => {
  const { submit, waitForEnd } = await setUp();
  const first = submit("touch 1 2 3; echo done", {}, { limits: { files: 3 } });
  expect(await waitForEnd(first)).toMatchObject({ status: "completed" });
  const resume = { mode: "resume", session_id: first, executor_session_id: "x" } as const;
  expect(await waitForEnd(submit("touch 4; echo done", resume, { limits: { files: 3 } }))).toMatchObject(
    limitFailure("files"),
  );
});

test("watches an executor that writes files itself, without a process", async () => {
  const executor = defineExecutor({
    name: "writer",
    async execute({ workDir, signal }) {
      for (let index = 0; !signal.aborted; index += 1) {
        writeFileSync(join(workDir, String(index)), "");
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return "written";
    },
  });
  const { submit, waitForEnd } = await setUp({ executor });
  expect(await waitForEnd(submit("write", {}, { limits: { files: 30 } }))).toMatchObject(
    limitFailure("files \\(30\\)"),
  );
});

test("keeps a person's stop as the reason", async () => {
  const { coordinator, submit, waitForEnd } = await setUp();
  const run = submit("echo started; exec sleep 100", {}, { limits: { files: 30 } });
  await poll(() => coordinator.events(run).some(({ type }) => type === "output")).toBe(true);
  coordinator.order(run, { stop: "user" });
  expect(await waitForEnd(run)).toMatchObject({ status: "cancelled", by: "user" });
});

test("applies the agent's other limits to each program it starts", async () => {
  const { submit, waitForEnd } = await setUp();
  expect(await waitForEnd(submit("ulimit -n", {}, { limits: { open_files: 23 } }))).toMatchObject({ text: "23\n" });
  expect(
    await waitForEnd(submit("exec head -c 20000 /dev/zero > big", {}, { limits: { file_size_bytes: 8192 } })),
  ).toMatchObject({ status: "failed", reason: "limit_exceeded", message: expect.stringContaining("file size") });
});

test("counts a command's own limit in its directory from its start", async () => {
  const executor = defineExecutor({
    name: "own",
    async execute({ context, workDir, prompt }) {
      for (let index = 0; index < 30; index += 1) writeFileSync(join(workDir, `old-${index}`), "");
      const command = { executable: "sh", arguments: ["-c", prompt], limits: { files: 10 } };
      const running = await context.start(command);
      running.stdout?.resume();
      running.stderr?.resume();
      return String((await running.result).error?.message);
    },
  });
  const { submit, waitForEnd } = await setUp({ executor });
  expect((await waitForEnd(submit("touch 1 2 3"))).text).toBe("undefined");
  expect((await waitForEnd(submit(makeFiles(".")))).text).toContain("limit on files (10)");
});

test("watches a command that works in the runner's own directory", async () => {
  const coordinator = createMemoryCoordinator();
  const { open } = await runners.setUp(coordinator);
  await open();
  const limits = { disk_bytes: 2_000_000 };
  const run = coordinator.submit({ ...sh("while :; do head -c 100000 /dev/zero >> grows; done"), limits });
  expect(await waitForOutcome(coordinator, run)).toMatchObject(limitFailure("disk space"));
});
