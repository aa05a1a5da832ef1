import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import {
  executionEnded,
  executionStarted,
  buildFinish,
  numbered,
  sampleId,
  sampleRun,
  timeAfter,
} from "../../../test/fixtures/record/sample.ts";
import { drive } from "../../../test/fixtures/dispatch/drive.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { exportAudit } from "./export.ts";
import { findInterruptedExecutions } from "./interrupted-executions.ts";
import { getCurrentOwner } from "./owner.ts";

const scratch = scratchStores();

it("writes one record for each execution, in order of their start", async () => {
  const directory = scratch.newDirectory();
  const run = sampleRun({ parent_run_id: "p\0arent" });
  const { run_id } = run;
  const store = await scratch.open(directory, { now: () => new Date(timeAfter(run_id, 20)) });
  const correlation = {
    session_id: "s",
    task_id: "t",
    step_id: "st",
    tool_call_id: "tc",
    worktree_id: "w",
    repo_sha: "abc",
  };
  await store.apply([
    {
      op: "create_run",
      run,
      events: numbered(run_id, 1, executionStarted(run_id, { correlation, limits: { cpu_seconds: 9 } })),
    },
    buildFinish(
      run_id,
      numbered(
        run_id,
        2,
        executionEnded(run_id, { exit_code: null, signal: "SIGKILL", timed_out: true, success: false }),
      ),
    ),
  ]);
  expect(await readExport(directory)).toEqual([
    {
      eventType: "command_execution",
      timestamp: timeAfter(run_id),
      recordedAt: timeAfter(run_id, 20),
      endRecordedAt: timeAfter(run_id, 20),
      clockDoubtful: false,
      runId: "p\0arent",
      sessionId: "s",
      taskId: "t",
      stepId: "st",
      toolCallId: "tc",
      worktreeId: "w",
      repoSha: "abc",
      command: "echo hello",
      exitCode: null,
      startTime: timeAfter(run_id),
      endTime: timeAfter(run_id, 5),
      durationMs: 5,
      executionId: run_id,
      parentRunId: "p\0arent",
      workingDirectory: "/work",
      timeoutMs: 300_000,
      limits: { cpu_seconds: 9 },
      environment: null,
      state: "ended",
      signal: "SIGKILL",
      timedOut: true,
      success: false,
      interrupted: false,
      isolation: "group",
      error: null,
      reportedBy: null,
    },
  ]);
});

it("distinguishes a running execution from one whose process died, and the sweep finds the latter", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  const child = spawn(process.execPath, ["-e", "0"]);
  await once(child, "exit");
  const owners = { alive: getCurrentOwner(), dead: { ...getCurrentOwner(), pid: child.pid ?? 0 } };
  const ids = { alive: sampleId(), dead: sampleId() };
  for (const state of ["alive", "dead"] as const) {
    const run = sampleRun();
    const events = numbered(run.run_id, 1, executionStarted(ids[state], { owner: owners[state] }));
    await store.apply([{ op: "create_run", run, events }]);
  }
  expect(
    (await readExport(directory)).map(({ state, interrupted, exitCode }) => [state, interrupted, exitCode]),
  ).toEqual([
    ["running", false, null],
    ["interrupted", true, null],
  ]);
  const found = await findInterruptedExecutions(store);
  expect(found.map(({ start }) => start.execution_id)).toEqual([ids.dead]);
  // A process that passes itself does not check its own executions.
  expect(await findInterruptedExecutions(store, owners.dead)).toEqual([]);

  const { run_id } = found[0] ?? { run_id: "" };
  await store.apply([
    buildFinish(run_id, numbered(run_id, 2, executionEnded(ids.dead, { interrupted: true, success: false }))),
  ]);
  expect(await findInterruptedExecutions(store)).toEqual([]);
  expect((await readExport(directory)).map(({ state }) => state)).toEqual(["running", "interrupted"]);
});

it("filters by time, pages through many executions, and waits for a slow writer", async () => {
  const directory = scratch.newDirectory();
  const run = sampleRun();
  const [first, ...ids] = Array.from({ length: 1201 }, () => sampleId());
  const last = ids.pop() ?? "";
  let now = timeAfter(first ?? "");
  const store = await scratch.open(directory, { now: () => new Date(now) });
  const buildStarts = (from: string[], n: number) =>
    from.map((id, index) => ({ n: n + index, at: timeAfter(id), event: executionStarted(id) }));
  await store.apply([{ op: "create_run", run, events: buildStarts([first ?? ""], 1) }]);
  const add = async (time: string, events: ReturnType<typeof buildStarts>) => {
    now = time;
    await store.apply([{ op: "append_events", run_id: run.run_id, attempt: 1, events }]);
  };
  await add(timeAfter(ids[0] ?? ""), buildStarts(ids, 2));
  await add(timeAfter(last), buildStarts([last], 1201));
  let writing = 0;
  const received: string[] = [];
  const { executions } = await exportAudit(
    { directory, since: timeAfter(ids[0] ?? ""), until: timeAfter(last) },
    async (line) => {
      expect((writing += 1)).toBe(1);
      await new Promise(setImmediate);
      writing -= 1;
      received.push(JSON.parse(line).executionId);
    },
  );
  expect(executions).toBe(1199);
  expect(received).toEqual(ids);
});

it("writes a line for each refused write of a runner, with what that runner had started", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  const { register, submit, claim, append } = drive(store, () => new Date());
  const runner = await register("late");
  const run_id = await submit();
  expect(await claim(runner)).toEqual([run_id]);
  const started = executionStarted(sampleId());
  expect(await append(runner, run_id, 7, 1, started)).toMatchObject({ ok: false, conflict: "fenced" });
  expect(await readExport(directory)).toEqual([
    {
      eventType: "refused_write",
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      runId: run_id,
      attempt: 7,
      currentAttempt: 1,
      runnerId: "late",
      refused: "append_events",
      executions: [started.type === "execution_started" ? started.execution : null],
    },
  ]);
});

it("shows a run's parent and age as sealed, whatever the table of runs says later", async () => {
  const directory = scratch.newDirectory();
  const run = sampleRun({ parent_run_id: "parent" });
  const store = await scratch.open(directory);
  await store.apply([
    { op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(run.run_id)) },
    buildFinish(run.run_id, numbered(run.run_id, 2, executionEnded(run.run_id))),
  ]);
  expect((await store.read.executions({ run_id: run.run_id }, { limit: 1 }))[0]?.start).not.toHaveProperty("run");
  await store.close();
  const before = await readExport(directory);
  expect(before).toMatchObject([{ runId: "parent", parentRunId: "parent" }]);
  const db = openDatabase(databaseFile(directory), {});
  db.exec("update runs set parent_run_id = 'forged', created_at = '2001-01-01T00:00:00.000Z'");
  expect(await readExport(directory)).toEqual(before);
  db.exec("delete from runs");
  expect(await readExport(directory)).toEqual(before);
  // As an earlier version wrote it.
  db.exec("update audit_rows set body = json_remove(body, '$.run')");
  db.close();
  expect(await readExport(directory)).toMatchObject([{ parentRunId: null, unsealed: ["parentRunId"] }]);
});

it("passes an error of the writer on unchanged", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  await store.apply([
    { op: "create_run", run: sampleRun(), events: numbered(sampleId(), 1, executionStarted(sampleId())) },
  ]);
  const closed = Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write", errno: -32 });
  const fault = exportAudit({ directory }, () => {
    throw closed;
  });
  await expect(fault).rejects.toBe(closed);
});

async function readExport(directory: string): Promise<Record<string, unknown>[]> {
  const lines: string[] = [];
  await exportAudit({ directory }, (line) => void lines.push(line));
  return lines.map((line) => JSON.parse(line));
}
