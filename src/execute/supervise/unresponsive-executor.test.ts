import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import type { FixtureOptions } from "../../../test/fixtures/execute/open-runner.ts";
import { waitForOutcome, poll, prepareRunners, sh, getText } from "../../../test/fixtures/execute/registered.ts";
import type { Executor, RunContext } from "../../model/executor.ts";
import { findOrphans } from "../../process/orphans.ts";
import { start } from "../../process/start.ts";
import { loadModuleExecutor } from "../executors/module-executor.ts";

const { setUp, cleanups } = prepareRunners();
const neverSettle = (): Promise<never> => new Promise(() => undefined);
const createExecutor = (run: Executor["run"]): Executor => ({
  name: "stubborn",
  can: { resume: false, fork: false, ask: true, input: false },
  run,
});
/** These executors ignore a graceful stop anyway. */
const shortGrace: Partial<FixtureOptions> = {
  supervise: { startOptions: { isolation: "group", environment: { mode: "merge" }, graceMs: 50 }, settleTimeoutMs: 50 },
};

test("gives up on an executor that never settles at its time limit, and drops its later events", async () => {
  const coordinator = createMemoryCoordinator();
  let context: RunContext | undefined;
  const executor = createExecutor((_invocation, given) => ((context = given), neverSettle()));
  const { open, notices } = await setUp(coordinator, { executor, slots: 1, ...shortGrace });
  await open();
  const id = coordinator.submit({ timeout_seconds: 0.05 });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({
    status: "failed",
    reason: "timeout",
    message: expect.stringContaining("The executor stubborn did not react to the stop"),
  });
  expect(coordinator.events(id)).toContainEqual(
    expect.objectContaining({ type: "error", code: "executor_unresponsive" }),
  );
  const before = coordinator.events(id).length;
  await context!.emit({ type: "assistant", text: "too late" });
  context!.usage({ input_tokens: 1, output_tokens: 1, cost_usd: null });
  await expect(context!.start({ executable: "true" })).rejects.toThrow("has ended");
  expect(notices.join("\n")).toContain("after it had ended");
  const next = coordinator.submit({ timeout_seconds: 0.05 });
  await waitForOutcome(coordinator, next);
  expect(coordinator.events(id)).toHaveLength(before);
});

test("a person's stop ends the run of an executor that never settles", async () => {
  const coordinator = createMemoryCoordinator();
  let hasExecutorStarted = false;
  const { open } = await setUp(coordinator, {
    executor: createExecutor(() => ((hasExecutorStarted = true), neverSettle())),
    ...shortGrace,
  });
  await open();
  const id = coordinator.submit({});
  await poll(() => hasExecutorStarted).toBe(true);
  coordinator.order(id, { stop: "user" });
  expect(await waitForOutcome(coordinator, id)).toEqual({ status: "cancelled", by: "user" });
});

test.each(["stop", "drain"] as const)("a runner's %s finishes even if an executor never settles", async (how) => {
  const coordinator = createMemoryCoordinator();
  let hasExecutorStarted = false;
  const executor = createExecutor(() => ((hasExecutorStarted = true), neverSettle()));
  const { open } = await setUp(coordinator, { executor, times: { drainMs: 50 }, ...shortGrace });
  const runner = await open();
  const id = coordinator.submit({});
  await poll(() => hasExecutorStarted).toBe(true);
  await runner[how]();
  // The run goes back to the queue, as after any shutdown.
  expect(coordinator.runs.get(id)).toMatchObject({ status: "pending" });
});

/** Bodies of module executors that would block a runner if they ran in its process. */
const hangingModules = {
  "never settles": "await new Promise(() => setInterval(() => undefined, 1000));",
  "blocks its thread": "for (;;);",
  "blocks in a system call": 'execFileSync("sleep", ["1000"]);',
  "ignores SIGTERM as well": 'process.on("SIGTERM", () => undefined); for (;;);',
  "hangs while a program of its own runs":
    'await context.start({ executable: "sleep", arguments: ["1000"] }); await new Promise(() => undefined);',
};

async function moduleExecutor(directory: string, body: string): Promise<Executor> {
  await writeFile(
    join(directory, "executor.mjs"),
    `import { execFileSync } from "node:child_process";
     export const executor = { name: "module", can: {}, async run(invocation, context) {
       await context.emit({ type: "assistant", text: "started" });
       ${body}
       return { status: "completed", exit_code: null, text: "done" };
     } };`,
  );
  const options = { runnerDirectory: directory, cacheDirectory: join(directory, "cache"), config: {} };
  return loadModuleExecutor({ ...options, module: "executor.mjs", start, env: process.env });
}

async function withModule(body: string) {
  const coordinator = createMemoryCoordinator();
  const directory = await mkdtemp(join(tmpdir(), "drover-unresponsive-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  const executor = await moduleExecutor(directory, body);
  const supervise = { ...shortGrace.supervise, settleTimeoutMs: 10_000 };
  const { open } = await setUp(coordinator, { executor, slots: 1, times: { drainMs: 50 }, supervise });
  return { coordinator, runner: await open() };
}

const executionIds = (coordinator: ReturnType<typeof createMemoryCoordinator>, id: string): string[] =>
  coordinator.events(id).flatMap((event) => (event.type === "execution_started" ? [event.execution.execution_id] : []));
const hasStarted = (coordinator: ReturnType<typeof createMemoryCoordinator>, id: string) =>
  poll(() => coordinator.events(id).some(({ type }) => type === "assistant")).toBe(true);

test.each(Object.entries(hangingModules))(
  "kills a module executor that %s, with everything it started",
  async (_what, body) => {
    const { coordinator } = await withModule(body);
    const id = coordinator.submit({});
    await hasStarted(coordinator, id);
    coordinator.order(id, { stop: "timeout" });
    expect(await waitForOutcome(coordinator, id)).toMatchObject({
      status: "failed",
      reason: "timeout",
      message: expect.stringContaining("The executor module did not react to the stop, so Drover killed it."),
    });
    const ids = executionIds(coordinator, id);
    expect(coordinator.events(id).filter(({ type }) => type === "execution_ended")).toHaveLength(ids.length);
    expect(findOrphans(ids)).toEqual([]);
  },
);

test("a drain finishes even if a module executor blocks its thread", async () => {
  const { coordinator, runner } = await withModule(hangingModules["ignores SIGTERM as well"]);
  const id = coordinator.submit({});
  await hasStarted(coordinator, id);
  await runner.drain();
  expect(coordinator.runs.get(id)).toMatchObject({ status: "pending" });
  expect(findOrphans(executionIds(coordinator, id))).toEqual([]);
});

test("kills an executor that ignores the stop on a second signal, without a grace period", async () => {
  const coordinator = createMemoryCoordinator();
  const hurry = new AbortController();
  const directory = await mkdtemp(join(tmpdir(), "drover-unresponsive-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  const patientOptions = {
    isolation: "group",
    environment: { mode: "merge" },
    graceMs: 600_000,
    hurry: hurry.signal,
  } as const;
  const executor = await moduleExecutor(
    directory,
    `await context.start({ executable: "/bin/sh", arguments: ["-c", "trap '' TERM; sleep 1000 & wait; wait"] });
     for (;;);`,
  );
  const { open } = await setUp(coordinator, { executor, supervise: { startOptions: patientOptions } });
  const runner = await open();
  const id = coordinator.submit({});
  await poll(() => executionIds(coordinator, id).length).toBe(2);
  const firstStop = runner.stop();
  hurry.abort();
  await Promise.all([runner.stop(), firstStop]);
  expect(findOrphans(executionIds(coordinator, id))).toEqual([]);
  expect(coordinator.runs.get(id)).toMatchObject({ status: "pending" });
});

test("a module executor that leaks timers and programs, or dies, affects no other run", async () => {
  const { coordinator } = await withModule(`
    console.log("a note");
    setInterval(() => undefined, 1000);
    await context.start({ executable: "sleep", arguments: ["1000"] });
    if (invocation.prompt === "die") setImmediate(() => { throw new Error("uncaught"); });
    if (invocation.prompt === "die") await new Promise(() => undefined);`);
  const died = coordinator.submit({}, { prompt: "die" });
  const leaked = coordinator.submit({});
  expect(await waitForOutcome(coordinator, died)).toMatchObject({
    status: "failed",
    reason: "internal",
    message: expect.stringMatching(/The executor module stopped unexpectedly: [^]*uncaught/),
  });
  expect(await waitForOutcome(coordinator, leaked)).toMatchObject({ status: "completed", text: "done" });
  expect(getText(coordinator, leaked)).toBe("a note\n");
  expect(coordinator.events(leaked)).toContainEqual(expect.objectContaining({ code: "left_running" }));
  for (const id of [died, leaked]) expect(findOrphans(executionIds(coordinator, id))).toEqual([]);
});

test("stops, counts and records programs that an executor leaves running", async () => {
  const coordinator = createMemoryCoordinator();
  const executor = createExecutor(async (_invocation, context) => {
    for (const trapCommand of ["", "trap '' TERM; "])
      await context.start({ executable: "/bin/sh", arguments: ["-c", `${trapCommand}sleep 1000 & wait; wait`] });
    void context.start({ executable: "sleep", arguments: ["1000"] });
    return { status: "completed", exit_code: null, text: "done" };
  });
  await (await setUp(coordinator, { executor, ...shortGrace })).open();
  const id = coordinator.submit({});
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed", text: "done" });
  const events = coordinator.events(id);
  const hasExecutorStarted = events.flatMap((event) => (event.type === "execution_started" ? [event.execution] : []));
  const ended = events.flatMap((event) => (event.type === "execution_ended" ? [event.execution] : []));
  expect(hasExecutorStarted).toHaveLength(3);
  expect(ended.map(({ execution_id }) => execution_id).sort()).toEqual(
    hasExecutorStarted.map(({ execution_id }) => execution_id).sort(),
  );
  expect(ended.every(({ stopped: firstStop }) => firstStop === "shutdown")).toBe(true);
  expect(events).toContainEqual({
    type: "error",
    code: "left_running",
    message: "The executor stubborn returned while 3 programs it had started were still running; Drover stopped them.",
  });
  expect(findOrphans(hasExecutorStarted.map(({ execution_id }) => execution_id))).toEqual([]);
});

test("stops an on_finish command that does not end when the runner stops", async () => {
  const coordinator = createMemoryCoordinator();
  const { open } = await setUp(coordinator, { supervise: { ...shortGrace.supervise, onFinishTimeoutMs: 600_000 } });
  const runner = await open();
  const id = coordinator.submit({ ...sh("true"), on_finish: "sleep 1000" });
  const hasExecutorStarted = () => coordinator.events(id).filter(({ type }) => type === "execution_started").length;
  await poll(hasExecutorStarted).toBe(2);
  await runner.stop();
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed" });
  expect(coordinator.events(id).filter(({ type }) => type === "execution_ended")).toHaveLength(2);
});
