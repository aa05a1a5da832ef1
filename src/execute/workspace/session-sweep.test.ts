import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { poll } from "../../../test/fixtures/execute/registered.ts";
import { listDirectories, shell, prepareShellRunners } from "../../../test/fixtures/execute/shell-runners.ts";
import { markSession } from "./session-marks.ts";

const { cleanups, setUp } = prepareShellRunners();

test("removes the directories of deleted sessions, except those in use", async () => {
  const { directory, coordinator, submit, waitForEnd, subtypes } = await setUp({ times: { sweepMs: 50 } }, true);
  const listNames = (root: string) => listDirectories(join(directory, root));
  const keptRun = submit("mkdir -p ro/in; chmod 500 ro; touch ~/x; echo ok");
  const deletedRun = submit("mkdir -p ro/in; chmod 500 ro; touch ~/x; echo ok");
  await waitForEnd(keptRun);
  await waitForEnd(deletedRun);
  const activeRun = submit("sleep 1000");
  await poll(() => subtypes(activeRun)).toContain("environment");
  await markSession(join(directory, "work"), "s9", { store_id: "store" });
  mkdirSync(join(directory, "work", "s9.copy"));
  coordinator.deletedSessions.add(deletedRun).add(activeRun);
  await poll(() => listNames("work")).toEqual([keptRun, activeRun].sort());
  await poll(() => listNames("homes")).toEqual([keptRun, activeRun].sort());
  coordinator.order(activeRun, { stop: "user" });
  await waitForEnd(activeRun);
  await poll(() => listNames("work")).toEqual([keptRun]);
});

test("removes nothing while the coordinator is unreachable", async () => {
  const { directory, coordinator, submit, waitForEnd } = await setUp({ times: { sweepMs: 10 } });
  const run_id = submit("echo ok");
  await waitForEnd(run_id);
  coordinator.faults.away = "silent";
  const before = coordinator.calls.sessions;
  await poll(() => coordinator.calls.sessions).toBeGreaterThan(before + 3);
  expect(listDirectories(join(directory, "work"))).toEqual([run_id]);
  coordinator.faults.away = null;
});

test("does not remove directories that another coordinator or a person made", async () => {
  const { fixture, supervise, runner, directory, submit, waitForEnd } = await setUp({ times: { sweepMs: 20 } }, true);
  const earlierRun = submit("echo ok");
  await waitForEnd(earlierRun);
  await runner.stop();

  const other = createMemoryCoordinator({ storeId: "other" });
  for (const root of ["work", "homes"]) {
    for (const name of ["my-notes", "0190a0a0-0000-7000-8000-000000000000"])
      mkdirSync(join(directory, root, name), { recursive: true });
    await markSession(join(directory, root), "own", { store_id: "other" });
    mkdirSync(join(directory, root, "own"));
  }
  const unrelated = ["0190a0a0-0000-7000-8000-000000000000", earlierRun, "my-notes"].sort();
  const second = await fixture.open({ port: other.port, supervise });
  cleanups.push(second.stop);
  await poll(() => listDirectories(join(directory, "work"))).not.toContain("own");
  await poll(() => listDirectories(join(directory, "homes"))).not.toContain("own");
  expect(listDirectories(join(directory, "work"))).toEqual(unrelated);
  expect(listDirectories(join(directory, "homes"))).toEqual(unrelated);
});

test("removes nothing if the response comes from a record to which the directories do not belong", async () => {
  const { port } = createMemoryCoordinator();
  const state = { storeId: "store", answered: 0 };
  const fixture = runnerFixture({ port, executor: shell });
  const root = join(fixture.directory, "work");
  await markSession(root, "s1", { store_id: "store" });
  mkdirSync(join(root, "s1"), { recursive: true });
  const runnerPromise = fixture.open({
    port: {
      ...port,
      register: async (registration) => ({ ...(await port.register(registration)), store_id: state.storeId }),
      // The record is replaced between request and response, and the runner has registered with the new one.
      async sessions({ session_ids }) {
        const runner = await runnerPromise;
        state.storeId = "other";
        await runner.replaceAgents([]);
        state.answered++;
        return { gone: session_ids };
      },
    },
  });
  const runner = await runnerPromise;
  cleanups.push(fixture.remove, runner.stop);
  await poll(() => state.answered).toBe(1);
  await runner.stop();
  expect(existsSync(join(root, "s1"))).toBe(true);
});

test("a resume marks a directory that has no mark", async () => {
  const { directory, coordinator, submit, waitForEnd } = await setUp({ times: { sweepMs: 20 } });
  mkdirSync(join(directory, "work", "s1"), { recursive: true });
  await waitForEnd(submit("echo ok", { mode: "resume", session_id: "s1", executor_session_id: "x" }));
  expect(listDirectories(join(directory, "work"))).toEqual(["s1"]);
  coordinator.deletedSessions.add("s1");
  await poll(() => listDirectories(join(directory, "work"))).toEqual([]);
});

test("refuses to continue a session whose directory has become a symlink", async () => {
  const { directory, submit, waitForEnd } = await setUp();
  mkdirSync(join(directory, "work"));
  symlinkSync(directory, join(directory, "work", "s1"));
  const resume = { mode: "resume", session_id: "s1", executor_session_id: "x" } as const;
  expect(await waitForEnd(submit("pwd", resume))).toMatchObject({ status: "failed", reason: "session_not_found" });
});

test("removes temporary directories of its previous process at the start", async () => {
  const coordinator = createMemoryCoordinator();
  const fixture = runnerFixture({ port: coordinator.port, executor: shell });
  cleanups.push(fixture.remove);
  mkdirSync(join(fixture.directory, "tmp", "r.1", "deep"), { recursive: true });
  const runner = await fixture.open();
  cleanups.push(runner.stop);
  expect(readdirSync(join(fixture.directory, "tmp"))).toEqual([]);
});

test("records the names of passed and withheld variables once", async () => {
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
  const { coordinator, submit, waitForEnd } = await setUp({ supervise: { startOptions } });
  const run_id = submit('echo "$MINE$EDITOR"; true', {});
  expect((await waitForEnd(run_id)).text).toBe("1\n");
  expect(coordinator.events(run_id).filter(({ type }) => type === "system")).toEqual([
    {
      type: "system",
      subtype: "environment",
      data: { passed: ["MINE"], withheld: ["AWS_SECRET_ACCESS_KEY", "OPENAI_BASE"] },
    },
  ]);
});
