import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { poll } from "../../../test/fixtures/execute/registered.ts";
import type { Executor } from "../../model/executor.ts";
import { defineExecutor, RunFailure } from "../scaffold/define-executor.ts";
import { listDirectories, shell, prepareShellRunners } from "../../../test/fixtures/execute/shell-runners.ts";

const { setUp } = prepareShellRunners();

test("a session without a project works in a private directory, and its resume finds it again", async () => {
  const { directory, submit, waitForEnd } = await setUp();
  const first = submit("pwd; echo 1 > note");
  expect((await waitForEnd(first)).text).toBe(`${join(directory, "work", first)}\n`);
  expect(statSync(join(directory, "work", first)).mode & 0o777).toBe(0o700);
  const second = submit("cat note", { mode: "resume", session_id: first, executor_session_id: "x" });
  expect((await waitForEnd(second)).text).toBe("1\n");
});

test("removes the directories of a session that no run can continue", async () => {
  const singleTurn: Executor = { ...shell, can: { ...shell.can, resume: false, fork: false } };
  const withoutResume = await setUp({ executor: singleTurn }, true);
  const reviewed = withoutResume.submit("echo code > note; echo done");
  expect(await withoutResume.waitForEnd(reviewed)).toMatchObject({ status: "completed", text: "done\n" });
  expect(withoutResume.coordinator.events(reviewed)).toContainEqual(
    expect.objectContaining({ type: "file", path: "note" }),
  );
  const refusingExecutor = defineExecutor({
    name: "refusing",
    can: { resume: true, fork: true },
    async execute({ workDir }) {
      writeFileSync(join(workDir, "note"), "x");
      throw new RunFailure("refused", "no");
    },
  });
  const withRefusals = await setUp({ executor: refusingExecutor }, true);
  expect(await withRefusals.waitForEnd(withRefusals.submit("x"))).toMatchObject({
    status: "failed",
    reason: "refused",
  });
  for (const { directory } of [withoutResume, withRefusals])
    for (const root of ["work", "homes"]) {
      expect(listDirectories(join(directory, root))).toEqual([]);
      const [owner] = readdirSync(join(directory, `${root}.owners`));
      expect(readdirSync(join(directory, `${root}.owners`, owner!))).toEqual([]);
    }
});

test("a run's outcome does not wait for the removal of its temporary directory", async () => {
  const directoriesAtEnd: string[][] = [];
  const { directory, submit, waitForEnd, runner } = await setUp({
    supervise: {
      onProgress(progress) {
        if (progress.ended !== null) directoriesAtEnd.push(listDirectories(join(directory, "tmp")));
      },
    },
  });
  const run_id = submit('mkdir "$TMPDIR/below"; echo x > "$TMPDIR/below/file"; echo done');
  expect(await waitForEnd(run_id)).toMatchObject({ status: "completed" });
  expect(directoriesAtEnd).toEqual([[`${run_id}.1`]]);
  await runner.stop();
  expect(listDirectories(join(directory, "tmp"))).toEqual([]);
});

test("a start does not see files of an earlier attempt", async () => {
  const { directory, submit, waitForEnd } = await setUp();
  mkdirSync(join(directory, "work", "s1"), { recursive: true });
  writeFileSync(join(directory, "work", "s1", "left"), "x");
  expect((await waitForEnd(submit("ls; echo done", { session_id: "s1" }))).text).toBe("done\n");
  writeFileSync(join(directory, "work", "s1", "left"), "x");
  const session = { session_id: "s1", executor_session_id: "x" };
  expect((await waitForEnd(submit("ls; echo done", session))).text).toBe("done\n");
});

test("a resume fails with session_not_found if its directory is gone", async () => {
  const { submit, waitForEnd } = await setUp();
  expect(await waitForEnd(submit("pwd", { mode: "resume", session_id: "s1", executor_session_id: "x" }))).toMatchObject(
    {
      status: "failed",
      reason: "session_not_found",
      message: expect.stringContaining("work directory of session s1"),
    },
  );
});

test("a fork gets a copy of the work directory and HOME, and its parent keeps its own", async () => {
  const { directory, submit, waitForEnd } = await setUp({}, true);
  const parent = submit("echo 1 > note; ln -s note link; mkfifo pipe; echo h > ~/.conf; chmod 500 .");
  await waitForEnd(parent);
  const fork = { mode: "fork", session_id: "s2", forked_from: parent, executor_session_id: "x" } as const;
  const forkOutcome = await waitForEnd(
    submit("cat link ~/.conf; ls; chmod 700 .; echo 2 > note; echo h2 > ~/.conf", fork),
  );
  expect(forkOutcome.text).toBe("1\nh\nlink\nnote\n");
  expect(readFileSync(join(directory, "work", parent, "note"), "utf8")).toBe("1\n");
  expect(readFileSync(join(directory, "homes", parent, ".conf"), "utf8")).toBe("h\n");
  chmodSync(join(directory, "work", parent), 0o700);
  const orphan = { ...fork, session_id: "s3", forked_from: "never-was" };
  expect(await waitForEnd(submit("pwd", orphan))).toMatchObject({ reason: "session_not_found" });
  expect(listDirectories(join(directory, "work"))).toEqual([parent, "s2"].sort());
});

test("does not count copied files as results of a fork", async () => {
  const { coordinator, submit, waitForEnd } = await setUp();
  const parent = submit("echo 1 > note");
  await waitForEnd(parent);
  const fork = submit("echo 2 > mine", {
    mode: "fork",
    session_id: "s2",
    forked_from: parent,
    executor_session_id: "x",
  });
  await waitForEnd(fork);
  expect(coordinator.events(fork).filter(({ type }) => type === "file")).toMatchObject([{ path: "mine" }]);
});

test("HOME is the operator's, or the session's own if the profile sets home: session", async () => {
  const withUserHome = await setUp();
  expect((await withUserHome.waitForEnd(withUserHome.submit("echo $HOME"))).text).toBe(`${withUserHome.directory}\n`);
  const withSessionHome = await setUp({}, true);
  const first = withSessionHome.submit("echo $HOME; echo kept > ~/x");
  expect((await withSessionHome.waitForEnd(first)).text).toBe(`${join(withSessionHome.directory, "homes", first)}\n`);
  const second = withSessionHome.submit("cat ~/x", { mode: "resume", session_id: first, executor_session_id: "x" });
  expect((await withSessionHome.waitForEnd(second)).text).toBe("kept\n");
});

test.each(["../evil", "..", "a/b", "", ".hidden", "x".repeat(200)])(
  "a session called %j gets no directory",
  async (session_id) => {
    const { directory, submit, waitForEnd } = await setUp();
    mkdirSync(join(directory, "evil"));
    expect(await waitForEnd(submit("pwd", { session_id }))).toMatchObject({ status: "failed", reason: "refused" });
    expect(existsSync(join(directory, "evil"))).toBe(true);
  },
);

test.each(["../evil", "..", "a/b", ".hidden"])("a command in a session called %j gets no HOME", async (session_id) => {
  const { directory, submit, waitForEnd } = await setUp({}, true);
  const run_id = submit("pwd", { session_id }, { type: "procedural", command: "true" });
  expect(await waitForEnd(run_id)).toMatchObject({ status: "failed", reason: "refused" });
  expect(existsSync(join(directory, "evil")) || existsSync(join(directory, "homes"))).toBe(false);
});

test("agent.workspace takes precedence over the project directory", async () => {
  const { directory, submit, waitForEnd } = await setUp();
  mkdirSync(join(directory, "p"));
  const project_dir = join(directory, "p");
  const scratch = submit("pwd", { project_dir }, { workspace: "scratch" });
  expect((await waitForEnd(scratch)).text).toBe(`${join(directory, "work", scratch)}\n`);
  expect((await waitForEnd(submit("pwd", { project_dir }))).text).toBe(`${project_dir}\n`);
  expect((await waitForEnd(submit("pwd", {}, { workspace: "in_place" }))).text).toBe(`${directory}\n`);
});

const waitingSubtype = "waiting_for_directory";

test("runs in one directory wait for each other, also through a symlink and above or below it", async () => {
  const { directory, coordinator, submit, waitForEnd, subtypes } = await setUp({ slots: 8 });
  mkdirSync(join(directory, "p", "sub"), { recursive: true });
  symlinkSync(join(directory, "p"), join(directory, "alias"));
  const script =
    "test ! -e $LOG.busy || echo clash >> $LOG; touch $LOG.busy; while ! [ -e $LOG.go ]; do sleep 0.02; done; rm $LOG.busy".replaceAll(
      "$LOG",
      join(directory, "log"),
    );
  const runs = ["p", "alias", "p/sub", "p"].map((name) =>
    submit(script + "; echo ok", { project_dir: join(directory, name) }),
  );
  // If they claim at the same moment, the first may have waited too.
  await poll(() => runs.filter((run_id) => subtypes(run_id).includes(waitingSubtype)).length).toBeGreaterThanOrEqual(3);
  writeFileSync(join(directory, "log.go"), "");
  for (const run_id of runs) expect(await waitForEnd(run_id)).toMatchObject({ status: "completed" });
  expect(existsSync(join(directory, "log"))).toBe(false);
  expect(readdirSync(join(directory, "locks"))).toEqual([]);
  expect(coordinator.runs.size).toBe(4);
});

test("runs in sibling directories do not wait, and waiting does not count towards the time limit", async () => {
  const { directory, submit, waitForEnd, subtypes } = await setUp({ slots: 8 });
  for (const name of ["p", "p2"]) mkdirSync(join(directory, name));
  const first = submit("sleep 5; echo ok", { project_dir: join(directory, "p") });
  await poll(() => subtypes(first)).toContain("environment");
  const unrelated = submit("echo ok", { project_dir: join(directory, "p2") });
  const second = submit("echo ok", { project_dir: join(directory, "p") }, { timeout_seconds: 4 });
  expect(await waitForEnd(unrelated)).toMatchObject({ status: "completed" });
  expect(await waitForEnd(second)).toMatchObject({ status: "completed" });
  expect(subtypes(unrelated)).not.toContain(waitingSubtype);
  expect(subtypes(second)).toContain(waitingSubtype);
});

test("a run does not start in a symlink that replaced its directory while it waited", async () => {
  const { directory, submit, waitForEnd, subtypes } = await setUp();
  const project_dir = join(directory, "p");
  mkdirSync(join(project_dir, "sub"), { recursive: true });
  const first = submit("while ! [ -e go ]; do sleep 0.02; done; rmdir sub; ln -s /usr sub", { project_dir });
  await poll(() => subtypes(first)).toContain("environment");
  const second = submit("pwd -P", { project_dir: join(project_dir, "sub") });
  await poll(() => subtypes(second)).toContain(waitingSubtype);
  writeFileSync(join(project_dir, "go"), "");
  expect(await waitForEnd(second)).toMatchObject({
    status: "failed",
    reason: "refused",
    message: expect.stringContaining("was replaced or removed while the run waited"),
  });
  expect(readdirSync(join(directory, "locks"))).toEqual([]);
});

test("a stop ends the wait for a directory", async () => {
  const { directory, coordinator, submit, waitForEnd, subtypes } = await setUp();
  const project_dir = directory;
  const first = submit("sleep 1000", { project_dir });
  await poll(() => subtypes(first)).toContain("environment");
  const second = submit("echo never", { project_dir });
  await poll(() => subtypes(second)).toContain(waitingSubtype);
  coordinator.order(second, { stop: "user" });
  expect(await waitForEnd(second)).toMatchObject({ status: "cancelled", by: "user" });
  coordinator.order(first, { stop: "user" });
  await waitForEnd(first);
  expect(readdirSync(join(directory, "locks"))).toEqual([]);
});

test("takes over the lock of a dead runner", async () => {
  const dead = spawn("/bin/true");
  await new Promise((resolve) => dead.once("exit", resolve));
  const isAlive = ({ pid }: { pid: number }) => pid !== dead.pid;
  const { directory, submit, waitForEnd } = await setUp({ supervise: { isAlive } });
  mkdirSync(join(directory, "locks"), { recursive: true });
  const owner = { pid: dead.pid, start: "", host: "here" };
  writeFileSync(join(directory, "locks", "0.json"), JSON.stringify({ directory: directory, run_id: "r", owner }));
  expect(await waitForEnd(submit("echo ok", { project_dir: directory }))).toMatchObject({ status: "completed" });
});

test("a procedural run neither waits for a lock nor takes one", async () => {
  const { directory, submit, waitForEnd, subtypes } = await setUp();
  const run_id = submit("pwd", { project_dir: directory }, { type: "procedural", command: "true" });
  expect((await waitForEnd(run_id)).text).toBe(`${directory}\n`);
  expect(existsSync(join(directory, "locks"))).toBe(false);
  expect(subtypes(run_id)).toEqual([]);
});

test.each(["scratch", "in_place", "plain"] as const)(
  "starts nothing if a symlink has replaced the work directory since it was checked (%s)",
  async (kind) => {
    const target = mkdtempSync(join(tmpdir(), "drover-target-"));
    const replacingExecutor = defineExecutor({
      name: "replacing",
      can: { resume: true, fork: true },
      async execute({ workDir, runCli }) {
        renameSync(workDir, `${workDir}-before`);
        symlinkSync(target, workDir);
        return (await runCli({ command: ["/bin/sh", "-c", "touch made"] })).stdout;
      },
    });
    const { directory, submit, waitForEnd } = await setUp({ executor: replacingExecutor });
    mkdirSync(join(directory, "p"));
    const agent = kind === "plain" ? ({ type: "procedural", command: "true" } as const) : { workspace: kind };
    const run_id = submit("x", { project_dir: join(directory, "p") }, agent);
    expect(await waitForEnd(run_id)).toMatchObject({
      status: "failed",
      message: expect.stringContaining("was replaced by a link or removed"),
    });
    expect(readdirSync(target)).toEqual([]);
    rmSync(target, { recursive: true });
  },
);
