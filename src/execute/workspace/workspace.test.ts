import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { type FixtureOptions, runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import type { Invocation } from "../../model/executor.ts";
import { defineExecutor } from "../scaffold/define-executor.ts";
import { markSession } from "./session-marks.ts";

const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { timeout: 20_000, interval: 10 });

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Runs its prompt as a shell script: what it sees of its directories is what it prints. */
const shell = defineExecutor({
  name: "shell",
  can: { resume: true, fork: true },
  async execute({ runCli, prompt }) {
    return (await runCli({ command: ["/bin/sh", "-c", prompt] })).stdout;
  },
});

const foldersIn = (root: string) => readdirSync(root).sort();

async function setUp(more: Partial<FixtureOptions> = {}, sessionHomes = false) {
  const coordinator = createMemoryCoordinator();
  const fixture = runnerFixture({ port: coordinator.port, executor: shell, ...more });
  const options = fixture.options();
  const places = {
    ...options.supervise.places,
    sessionHomes: sessionHomes ? join(fixture.folder, "homes") : null,
  };
  const supervise = { ...options.supervise, places };
  const runner = await fixture.open({ supervise });
  closing.push(fixture.remove, runner.stop);
  const submit = (prompt: string, invocation: Partial<Invocation> = {}, agent = {}) =>
    coordinator.submit({ type: "autonomous", ...agent }, { prompt, ...invocation });
  const ended = async (run_id: string) => {
    await poll(() => coordinator.runs.get(run_id)!.outcome).not.toBeNull();
    const outcome = coordinator.runs.get(run_id)!.outcome!;
    return { ...outcome, text: "text" in outcome ? outcome.text : null };
  };
  const subtypes = (run_id: string) =>
    coordinator.events(run_id).flatMap((event) => (event.type === "system" ? [event.subtype] : []));
  return { coordinator, fixture, supervise, runner, folder: fixture.folder, submit, ended, subtypes };
}

test("a session without a project works in a private folder of its own, which its resume finds again", async () => {
  const { folder, submit, ended } = await setUp();
  const first = submit("pwd; echo 1 > note");
  expect((await ended(first)).text).toBe(`${join(folder, "work", first)}\n`);
  expect(statSync(join(folder, "work", first)).mode & 0o777).toBe(0o700);
  const second = submit("cat note", { mode: "resume", session_id: first, executor_session_id: "x" });
  expect((await ended(second)).text).toBe("1\n");
});

test("a start finds nothing that an earlier attempt left", async () => {
  const { folder, submit, ended } = await setUp();
  mkdirSync(join(folder, "work", "s1"), { recursive: true });
  writeFileSync(join(folder, "work", "s1", "left"), "x");
  expect((await ended(submit("ls; echo done", { session_id: "s1" }))).text).toBe("done\n");
  writeFileSync(join(folder, "work", "s1", "left"), "x");
  const named = { session_id: "s1", executor_session_id: "x" };
  expect((await ended(submit("ls; echo done", named))).text).toBe("done\n");
});

test("a resume whose folder is gone says so", async () => {
  const { submit, ended } = await setUp();
  expect(await ended(submit("pwd", { mode: "resume", session_id: "s1", executor_session_id: "x" }))).toMatchObject({
    status: "failed",
    reason: "session_not_found",
    message: expect.stringContaining("work directory of session s1"),
  });
});

test("a fork has a copy of work directory and HOME, and its parent keeps its own", async () => {
  const { folder, submit, ended } = await setUp({}, true);
  const parent = submit("echo 1 > note; ln -s note link; mkfifo pipe; echo h > ~/.conf; chmod 500 .");
  await ended(parent);
  const fork = { mode: "fork", session_id: "s2", forked_from: parent, executor_session_id: "x" } as const;
  const forked = await ended(submit("cat link ~/.conf; ls; chmod 700 .; echo 2 > note; echo h2 > ~/.conf", fork));
  expect(forked.text).toBe("1\nh\nlink\nnote\n");
  expect(readFileSync(join(folder, "work", parent, "note"), "utf8")).toBe("1\n");
  expect(readFileSync(join(folder, "homes", parent, ".conf"), "utf8")).toBe("h\n");
  chmodSync(join(folder, "work", parent), 0o700);
  const orphan = { ...fork, session_id: "s3", forked_from: "never-was" };
  expect(await ended(submit("pwd", orphan))).toMatchObject({ reason: "session_not_found" });
  expect(foldersIn(join(folder, "work"))).toEqual([parent, "s2"].sort());
});

test("what a fork copied is not what it made", async () => {
  const { coordinator, submit, ended } = await setUp();
  const parent = submit("echo 1 > note");
  await ended(parent);
  const fork = submit("echo 2 > mine", {
    mode: "fork",
    session_id: "s2",
    forked_from: parent,
    executor_session_id: "x",
  });
  await ended(fork);
  expect(coordinator.events(fork).filter(({ type }) => type === "file")).toMatchObject([{ path: "mine" }]);
});

test("HOME is the operator's, or the session's own where the profile says so", async () => {
  const users = await setUp();
  expect((await users.ended(users.submit("echo $HOME"))).text).toBe(`${users.folder}\n`);
  const own = await setUp({}, true);
  const first = own.submit("echo $HOME; echo kept > ~/x");
  expect((await own.ended(first)).text).toBe(`${join(own.folder, "homes", first)}\n`);
  const second = own.submit("cat ~/x", { mode: "resume", session_id: first, executor_session_id: "x" });
  expect((await own.ended(second)).text).toBe("kept\n");
});

test.each(["../evil", "..", "a/b", "", ".hidden", "x".repeat(200)])(
  "a session called %j gets no folder",
  async (session_id) => {
    const { folder, submit, ended } = await setUp();
    mkdirSync(join(folder, "evil"));
    expect(await ended(submit("pwd", { session_id }))).toMatchObject({ status: "failed", reason: "refused" });
    expect(existsSync(join(folder, "evil"))).toBe(true);
  },
);

test.each(["../evil", "..", "a/b", ".hidden"])("a command in a session called %j gets no HOME", async (session_id) => {
  const { folder, submit, ended } = await setUp({}, true);
  const run_id = submit("pwd", { session_id }, { type: "procedural", command: "true" });
  expect(await ended(run_id)).toMatchObject({ status: "failed", reason: "refused" });
  expect(existsSync(join(folder, "evil")) || existsSync(join(folder, "homes"))).toBe(false);
});

test("agent.workspace decides over the project directory", async () => {
  const { folder, submit, ended } = await setUp();
  mkdirSync(join(folder, "p"));
  const project_dir = join(folder, "p");
  const scratch = submit("pwd", { project_dir }, { workspace: "scratch" });
  expect((await ended(scratch)).text).toBe(`${join(folder, "work", scratch)}\n`);
  expect((await ended(submit("pwd", { project_dir }))).text).toBe(`${project_dir}\n`);
  expect((await ended(submit("pwd", {}, { workspace: "in_place" }))).text).toBe(`${folder}\n`);
});

const waiting = "waiting_for_directory";

test("two runs in one directory wait for each other, also by a link, and above or below", async () => {
  const { folder, coordinator, submit, ended, subtypes } = await setUp({ slots: 8 });
  mkdirSync(join(folder, "p", "sub"), { recursive: true });
  symlinkSync(join(folder, "p"), join(folder, "alias"));
  const script =
    "test ! -e $LOG.busy || echo clash >> $LOG; touch $LOG.busy; while ! [ -e $LOG.go ]; do sleep 0.02; done; rm $LOG.busy".replaceAll(
      "$LOG",
      join(folder, "log"),
    );
  const runs = ["p", "alias", "p/sub", "p"].map((name) =>
    submit(script + "; echo ok", { project_dir: join(folder, name) }),
  );
  // of claims made at one moment the first may have waited too
  await poll(() => runs.filter((run_id) => subtypes(run_id).includes(waiting)).length).toBeGreaterThanOrEqual(3);
  writeFileSync(join(folder, "log.go"), "");
  for (const run_id of runs) expect(await ended(run_id)).toMatchObject({ status: "completed" });
  expect(existsSync(join(folder, "log"))).toBe(false);
  expect(readdirSync(join(folder, "locks"))).toEqual([]);
  expect(coordinator.runs.size).toBe(4);
});

test("directories beside each other do not wait, and the wait is not part of the time limit", async () => {
  const { folder, submit, ended, subtypes } = await setUp({ slots: 8 });
  for (const name of ["p", "p2"]) mkdirSync(join(folder, name));
  const first = submit("sleep 1.5; echo ok", { project_dir: join(folder, "p") });
  await poll(() => subtypes(first)).toContain("environment");
  const beside = submit("echo ok", { project_dir: join(folder, "p2") });
  const second = submit("echo ok", { project_dir: join(folder, "p") }, { timeout_seconds: 1 });
  expect(await ended(beside)).toMatchObject({ status: "completed" });
  expect(await ended(second)).toMatchObject({ status: "completed" });
  expect(subtypes(beside)).not.toContain(waiting);
  expect(subtypes(second)).toContain(waiting);
});

test("a stop ends the wait for a directory", async () => {
  const { folder, coordinator, submit, ended, subtypes } = await setUp();
  const project_dir = folder;
  const first = submit("sleep 1000", { project_dir });
  await poll(() => subtypes(first)).toContain("environment");
  const second = submit("echo never", { project_dir });
  await poll(() => subtypes(second)).toContain(waiting);
  coordinator.order(second, { stop: "user" });
  expect(await ended(second)).toMatchObject({ status: "cancelled", by: "user" });
  coordinator.order(first, { stop: "user" });
  await ended(first);
  expect(readdirSync(join(folder, "locks"))).toEqual([]);
});

test("what a dead runner held is free again", async () => {
  const dead = spawn("/bin/true");
  await new Promise((resolve) => dead.once("exit", resolve));
  const isAlive = ({ pid }: { pid: number }) => pid !== dead.pid;
  const { folder, submit, ended } = await setUp({ supervise: { isAlive } });
  mkdirSync(join(folder, "locks"), { recursive: true });
  const owner = { pid: dead.pid, start: "", host: "here" };
  writeFileSync(join(folder, "locks", "0.json"), JSON.stringify({ directory: folder, run_id: "r", owner }));
  expect(await ended(submit("echo ok", { project_dir: folder }))).toMatchObject({ status: "completed" });
});

test("a procedural run neither waits nor locks", async () => {
  const { folder, submit, ended, subtypes } = await setUp();
  const run_id = submit("pwd", { project_dir: folder }, { type: "procedural", command: "true" });
  expect((await ended(run_id)).text).toBe(`${folder}\n`);
  expect(existsSync(join(folder, "locks"))).toBe(false);
  expect(subtypes(run_id)).toEqual([]);
});

test("folders of sessions that are gone are removed, others and those in use are not", async () => {
  const { folder, coordinator, submit, ended, subtypes } = await setUp({ times: { sweepMs: 50 } }, true);
  const names = (of: string) => foldersIn(join(folder, of));
  const kept = submit("mkdir -p ro/in; chmod 500 ro; touch ~/x; echo ok");
  const deleted = submit("mkdir -p ro/in; chmod 500 ro; touch ~/x; echo ok");
  await ended(kept);
  await ended(deleted);
  const running = submit("sleep 1000");
  await poll(() => subtypes(running)).toContain("environment");
  await markSession(join(folder, "work"), "s9", { store_id: "store", runner_id: "runner-test-" });
  mkdirSync(join(folder, "work", "s9.copy"));
  coordinator.goneSessions.add(deleted).add(running);
  await poll(() => names("work")).toEqual([kept, running].sort());
  await poll(() => names("homes")).toEqual([kept, running].sort());
  coordinator.order(running, { stop: "user" });
  await ended(running);
  await poll(() => names("work")).toEqual([kept]);
});

test("a coordinator that is away keeps every folder", async () => {
  const { folder, coordinator, submit, ended } = await setUp({ times: { sweepMs: 10 } });
  const run_id = submit("echo ok");
  await ended(run_id);
  coordinator.faults.away = "silent";
  const before = coordinator.calls.sessions;
  await poll(() => coordinator.calls.sessions).toBeGreaterThan(before + 3);
  expect(foldersIn(join(folder, "work"))).toEqual([run_id]);
  coordinator.faults.away = null;
});

test("folders that another coordinator, another runner or a person made are nobody's to remove", async () => {
  const { fixture, supervise, runner, folder, submit, ended } = await setUp({ times: { sweepMs: 20 } }, true);
  const elsewhere = submit("echo ok");
  await ended(elsewhere);
  await runner.stop();

  const other = createMemoryCoordinator({ storeId: "other" });
  for (const root of ["work", "homes"]) {
    for (const name of ["my-notes", "0190a0a0-0000-7000-8000-000000000000"])
      mkdirSync(join(folder, root, name), { recursive: true });
    await markSession(join(folder, root), "neighbours", { store_id: "other", runner_id: "runner-neighbour-" });
    mkdirSync(join(folder, root, "neighbours"));
    await markSession(join(folder, root), "own", { store_id: "other", runner_id: "runner-test-" });
    mkdirSync(join(folder, root, "own"));
  }
  const left = ["0190a0a0-0000-7000-8000-000000000000", elsewhere, "my-notes", "neighbours"].sort();
  const second = await fixture.open({ port: other.port, supervise });
  closing.push(second.stop);
  await poll(() => foldersIn(join(folder, "work"))).not.toContain("own");
  await poll(() => foldersIn(join(folder, "homes"))).not.toContain("own");
  expect(foldersIn(join(folder, "work"))).toEqual(left);
  expect(foldersIn(join(folder, "homes"))).toEqual(left);
});

test("an answer that came from another record than the folders were made for removes nothing", async () => {
  const { port } = createMemoryCoordinator();
  const state = { storeId: "store", answered: 0 };
  const fixture = runnerFixture({ port, executor: shell });
  const root = join(fixture.folder, "work");
  await markSession(root, "s1", { store_id: "store", runner_id: "runner-test-" });
  mkdirSync(join(root, "s1"), { recursive: true });
  const opening = fixture.open({
    port: {
      ...port,
      register: async (registration) => ({ ...(await port.register(registration)), store_id: state.storeId }),
      // the record is exchanged between question and answer, and the runner has registered with the new one by then
      async sessions({ session_ids }) {
        const runner = await opening;
        state.storeId = "other";
        await runner.replaceAgents([]);
        state.answered++;
        return { gone: session_ids };
      },
    },
  });
  const runner = await opening;
  closing.push(fixture.remove, runner.stop);
  await poll(() => state.answered).toBe(1);
  await runner.stop();
  expect(existsSync(join(root, "s1"))).toBe(true);
});

test("a resume makes a folder that has no mark its own", async () => {
  const { folder, coordinator, submit, ended } = await setUp({ times: { sweepMs: 20 } });
  mkdirSync(join(folder, "work", "s1"), { recursive: true });
  await ended(submit("echo ok", { mode: "resume", session_id: "s1", executor_session_id: "x" }));
  expect(foldersIn(join(folder, "work"))).toEqual(["s1"]);
  coordinator.goneSessions.add("s1");
  await poll(() => foldersIn(join(folder, "work"))).toEqual([]);
});

test("a session whose folder has become a link is not continued", async () => {
  const { folder, submit, ended } = await setUp();
  mkdirSync(join(folder, "work"));
  symlinkSync(folder, join(folder, "work", "s1"));
  const resume = { mode: "resume", session_id: "s1", executor_session_id: "x" } as const;
  expect(await ended(submit("pwd", resume))).toMatchObject({ status: "failed", reason: "session_not_found" });
});

test("at its start a runner clears the temporary folders that it left when it died", async () => {
  const coordinator = createMemoryCoordinator();
  const fixture = runnerFixture({ port: coordinator.port, executor: shell });
  closing.push(fixture.remove);
  mkdirSync(join(fixture.folder, "tmp", "r.1", "deep"), { recursive: true });
  const runner = await fixture.open();
  closing.push(runner.stop);
  expect(readdirSync(join(fixture.folder, "tmp"))).toEqual([]);
});

test("which variables a run got and which were kept from it is told once, by name", async () => {
  const parentEnvironment = {
    PATH: process.env["PATH"],
    MINE: "1",
    AWS_SECRET_ACCESS_KEY: "s3cret",
    OPENAI_BASE: "x",
    EDITOR: "vi",
  };
  const startOptions = {
    isolation: "group",
    environment: { mode: "merge", allow: ["MI*"] },
    parentEnvironment,
  } as const;
  const { coordinator, submit, ended } = await setUp({ supervise: { startOptions } });
  const run_id = submit('echo "$MINE$EDITOR"; true', {});
  expect((await ended(run_id)).text).toBe("1\n");
  expect(coordinator.events(run_id).filter(({ type }) => type === "system")).toEqual([
    {
      type: "system",
      subtype: "environment",
      data: { passed: ["MINE"], withheld: ["AWS_SECRET_ACCESS_KEY", "OPENAI_BASE"] },
    },
  ]);
});
