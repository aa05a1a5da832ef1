import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createMemoryCoordinator, type MemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { type FixtureOptions, runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { PortError } from "../../model/port-error.ts";
import { defineExecutor, type ExecutorDefinition } from "../scaffold/define-executor.ts";

const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const sh = (script: string) => ["/bin/sh", "-c", script] as const;
const runScript =
  (script: string): ExecutorDefinition["execute"] =>
  async ({ runCli }) => {
    await runCli({ command: sh(script) });
    return "made";
  };

async function setUp(
  execute: ExecutorDefinition["execute"],
  overrides: Partial<FixtureOptions> = {},
  coordinator = createMemoryCoordinator(),
) {
  const fixture = runnerFixture({
    port: coordinator.port,
    executor: defineExecutor({ name: "test", execute }),
    ...overrides,
  });
  const runner = await fixture.open();
  cleanups.push(fixture.remove, runner.stop);
  const waitForEnd = async (run_id: string) => {
    await poll(() => coordinator.runs.get(run_id)!.outcome).not.toBeNull();
    // No run leaves temporary files behind; they are removed after the outcome.
    await poll(() => readdirSync(join(fixture.directory, "tmp"))).toEqual([]);
    return coordinator.runs.get(run_id)!;
  };
  return { coordinator, fixture, runner, waitForEnd };
}

const submit = (coordinator: MemoryCoordinator, agent = {}) => coordinator.submit({ type: "autonomous", ...agent });
const fileEvents = (coordinator: MemoryCoordinator, run_id: string) =>
  coordinator.events(run_id).filter(({ type }) => type === "file");

test("uploads files, then records their size, hash and type", async () => {
  const { coordinator, waitForEnd } = await setUp(
    runScript(
      "echo hi > hello.txt; mkdir sub; printf '\\377\\000' > sub/data; printf 'caf\\303\\251' > sub/words; : > empty",
    ),
  );
  const run_id = submit(coordinator);
  const run = await waitForEnd(run_id);
  expect(run.outcome).toEqual({ status: "completed", exit_code: null, text: "made" });
  const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");
  const text = "text/plain";
  expect(fileEvents(coordinator, run_id)).toEqual([
    { type: "file", path: "empty", size: 0, sha256: sha256(""), media_type: text },
    { type: "file", path: "hello.txt", size: 3, sha256: sha256("hi\n"), media_type: text },
    {
      type: "file",
      path: "sub/data",
      size: 2,
      sha256: sha256(Buffer.from([0xff, 0])),
      media_type: "application/octet-stream",
    },
    { type: "file", path: "sub/words", size: 5, sha256: sha256("café"), media_type: text },
  ]);
  expect(run.uploads.get(sha256("hi\n"))?.toString()).toBe("hi\n");
});

test("retries an upload until the coordinator is back", async () => {
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > a; echo 2 > b"));
  let tries = 0;
  coordinator.faults.onUpload = () => {
    if (++tries % 3 !== 0) throw new PortError("away", "not now");
    return "stored";
  };
  const run_id = submit(coordinator);
  expect((await waitForEnd(run_id)).outcome).toMatchObject({ status: "completed" });
  expect(tries).toBe(6);
  expect(fileEvents(coordinator, run_id)).toHaveLength(2);
});

test("records no file if the coordinator refuses one upload", async () => {
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > a; echo 2 > b"));
  let count = 0;
  coordinator.faults.onUpload = () => {
    if (++count > 1) throw new PortError("refused", "too many files");
    return "stored";
  };
  const run_id = submit(coordinator);
  expect((await waitForEnd(run_id)).outcome).toMatchObject({
    status: "failed",
    reason: "upload_failed",
    message: expect.stringContaining("too many files"),
    text: "made",
  });
  expect(fileEvents(coordinator, run_id)).toEqual([]);
});

test("fails the upload if the coordinator is unreachable for too long", async () => {
  const uploads = { retryMs: 5, retryForMs: 100, retryForMsAfterStop: 100, stallMs: 1000 };
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > a"), { supervise: { uploads } });
  coordinator.faults.onUpload = () => {
    throw new PortError("away", "gone fishing");
  };
  expect((await waitForEnd(submit(coordinator))).outcome).toMatchObject({ reason: "upload_failed" });
});

test("aborts an upload that makes no progress", async () => {
  const uploads = { retryMs: 5, retryForMs: 1, retryForMsAfterStop: 1, stallMs: 50 };
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > a"), { supervise: { uploads } });
  coordinator.faults.onUpload = () => new Promise(() => undefined);
  expect((await waitForEnd(submit(coordinator))).outcome).toMatchObject({ reason: "upload_failed" });
});

test("a stop during the upload cancels the run", async () => {
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > a"));
  let uploading = false;
  coordinator.faults.onUpload = () => {
    uploading = true;
    throw new PortError("away", "not now");
  };
  const run_id = submit(coordinator);
  await poll(() => uploading).toBe(true);
  coordinator.order(run_id, { stop: "user" });
  expect((await waitForEnd(run_id)).outcome).toEqual({ status: "cancelled", by: "user" });
  expect(fileEvents(coordinator, run_id)).toEqual([]);
});

test("a run that is fenced during the upload stops and reports nothing", async () => {
  const { coordinator, fixture, runner } = await setUp(runScript("echo 1 > a"));
  coordinator.faults.onUpload = ({ run_id }) => {
    coordinator.fence(run_id);
    return "fenced";
  };
  const run_id = submit(coordinator, { on_finish: `touch ${fixture.directory}/over` });
  await poll(() => coordinator.calls.upload).toBe(1);
  await poll(() => runner.running).toBe(0);
  await poll(fixture.logs).toEqual([]);
  // The run is not over: another runner has it.
  expect(existsSync(join(fixture.directory, "over"))).toBe(false);
  expect(fileEvents(coordinator, run_id)).toEqual([]);
});

test("retries an upload during which the runner registered again", async () => {
  const { coordinator, runner, waitForEnd } = await setUp(runScript("echo 1 > a"));
  let first = true;
  coordinator.faults.onUpload = async () => {
    if (!first) return "stored";
    first = false;
    await runner.replaceAgents([]);
    return "fenced";
  };
  expect((await waitForEnd(submit(coordinator))).outcome).toMatchObject({ status: "completed" });
});

test("reads a file again if it changed during its upload", async () => {
  let work = "";
  const { coordinator, waitForEnd } = await setUp(async (job) => {
    work = job.workDir;
    await job.runCli({ command: sh("echo first > a") });
  });
  let first = true;
  coordinator.faults.onUpload = async () => {
    if (!first) return "stored";
    first = false;
    await writeFile(join(work, "a"), "second, and longer");
    return "mismatch";
  };
  const run_id = submit(coordinator);
  await waitForEnd(run_id);
  expect(fileEvents(coordinator, run_id)).toMatchObject([{ path: "a", size: 18 }]);
});

test("uploads the files of a run that reached its time limit or idle timeout", async () => {
  for (const [limits, reason] of [
    [{ timeout_seconds: 4 }, "timeout"],
    [{ idle_timeout_seconds: 4 }, "idle"],
  ] as const) {
    const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > half; sleep 1000 & wait"));
    const run_id = submit(coordinator, limits);
    expect((await waitForEnd(run_id)).outcome).toMatchObject({ status: "failed", reason });
    expect(fileEvents(coordinator, run_id)).toMatchObject([{ path: "half" }]);
  }
});

test("reports an unexpected exception in one sentence, with the stack trace for the operator only", async () => {
  const { coordinator, fixture, waitForEnd } = await setUp(async () => {
    throw new TypeError("undefined is not a function at /secret/place");
  });
  expect((await waitForEnd(submit(coordinator))).outcome).toEqual({
    status: "failed",
    reason: "internal",
    message: "The executor test failed unexpectedly. See the runner's log for the stack trace.",
    exit_code: null,
  });
  expect(fixture.notices.join()).toContain("undefined is not a function");
});

test("drops a file event that an executor sends itself", async () => {
  const { coordinator, waitForEnd } = await setUp(async ({ context }) => {
    await context.emit({ type: "file", path: "forged", size: 1, sha256: "0", media_type: "text/plain" });
    return "x";
  });
  const run_id = submit(coordinator);
  await waitForEnd(run_id);
  expect(fileEvents(coordinator, run_id)).toMatchObject([{ path: "response.txt" }]);
});

test("uploads no files of a run that a shutdown stopped", async () => {
  const { coordinator, fixture, runner } = await setUp(runScript("echo 1 > half; sleep 1000 & wait"));
  const run_id = submit(coordinator);
  const work = join(fixture.directory, "work", run_id, "half");
  await poll(() => existsSync(work)).toBe(true);
  await runner.stop();
  expect(coordinator.calls.upload).toBe(0);
});

test("skips a file larger than the coordinator's limit, whatever the profile allows", async () => {
  const coordinator = createMemoryCoordinator({ maxFileBytes: 1024 * 1024 });
  const { waitForEnd } = await setUp(runScript("truncate -s 1048577 large; truncate -s 1048576 fits"), {}, coordinator);
  for (const executor_config of [{ max_file_mb: 200 }, {}]) {
    const run_id = coordinator.submit({ type: "autonomous" }, { executor_config });
    expect((await waitForEnd(run_id)).outcome).toMatchObject({ status: "completed" });
    expect(fileEvents(coordinator, run_id)).toMatchObject([{ path: "fits" }]);
    expect(coordinator.events(run_id)).toContainEqual({
      type: "system",
      subtype: "files_left_out",
      data: { count: 1, files: [{ path: "large", reason: "too_large", size: 1_048_577 }] },
    });
  }
});

test.each(["user", "shutdown"] as const)(
  "does not complete a run without its files if it was stopped (%s) but returned normally",
  async (by) => {
    let started = false;
    const { coordinator, fixture, runner } = await setUp(async ({ workDir, signal }) => {
      await writeFile(join(workDir, "a"), "1");
      const stopped = once(signal, "abort");
      started = true;
      await stopped;
      return "made";
    });
    const run_id = submit(coordinator);
    await poll(() => started).toBe(true);
    const { attempt } = coordinator.runs.get(run_id)!;
    started = false;
    coordinator.order(run_id, { stop: by });
    const run = coordinator.runs.get(run_id)!;
    if (by === "user") await poll(() => run.outcome).toEqual({ status: "cancelled", by });
    // A run that a shutdown stopped goes back to the queue and is claimed again.
    else await poll(() => started && run.attempt > attempt).toBe(true);
    expect(fileEvents(coordinator, run_id)).toEqual([]);
    await runner.stop();
    await poll(fixture.unshipped).toEqual([]);
  },
);

test("a shutdown does not wait for the files of a run that reached its time limit", async () => {
  const uploads = { retryMs: 5, retryForMs: 600_000, retryForMsAfterStop: 600_000, stallMs: 600_000 };
  const { coordinator, waitForEnd } = await setUp(runScript("echo 1 > half; sleep 1000 & wait"), {
    supervise: { uploads },
  });
  coordinator.faults.onUpload = () => {
    throw new PortError("away", "not now");
  };
  const run_id = submit(coordinator, { timeout_seconds: 4 });
  await poll(() => coordinator.calls.upload).toBeGreaterThan(0);
  coordinator.order(run_id, { stop: "shutdown" });
  expect((await waitForEnd(run_id)).outcome).toMatchObject({ status: "failed", reason: "timeout" });
  expect(fileEvents(coordinator, run_id)).toEqual([]);
});
