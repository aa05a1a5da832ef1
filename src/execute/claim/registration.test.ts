import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import {
  expectDense,
  waitForOutcome,
  poll,
  prepareRunners,
  sh,
  getText,
} from "../../../test/fixtures/execute/registered.ts";
import { getOutputBytes } from "../../model/output.ts";
import { findOrphans } from "../../process/orphans.ts";

const { cleanups, setUp } = prepareRunners();

test("runs a claimed run to its outcome and leaves nothing behind", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, logs, directory } = await setUp(coordinator);
  await open();
  const id = coordinator.submit(sh("echo hello; echo oops >&2; echo $TMPDIR >&2; echo $DROVER_RUN_ID >&2"));
  expect(await waitForOutcome(coordinator, id)).toEqual({ status: "completed", exit_code: 0, text: "hello\n" });
  const types = coordinator.events(id).map(({ type }) => type);
  expect(types.slice(0, 2)).toEqual(["status", "execution_started"]);
  expect(types.at(-1)).toBe("execution_ended");
  expect(getText(coordinator, id)).toContain(join(directory, "tmp"));
  expect(getText(coordinator, id)).toContain(id);
  expectDense(coordinator, id);
  await poll(logs).toEqual([]);
  expect(await readdir(join(directory, "tmp"))).toEqual([]);
});

/** Whether this user can make files immutable. */
const hasImmutable = process.getuid?.() === 0 && spawnSync("chattr", ["-V"]).status !== null;

test.runIf(hasImmutable)("starts even if an earlier run left a file that cannot be removed", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  const leftover = join(directory, "tmp", "run-before");
  mkdirSync(leftover, { recursive: true });
  writeFileSync(join(leftover, "stuck"), "");
  mkdirSync(join(directory, "tmp", "removable"));
  const { status } = spawnSync("chattr", ["+i", join(leftover, "stuck")]);
  cleanups.push(async () => void spawnSync("chattr", ["-i", join(leftover, "stuck")]));
  await open();
  expect(await waitForOutcome(coordinator, coordinator.submit(sh("echo hello")))).toMatchObject({
    status: "completed",
  });
  await poll(() => readdir(join(directory, "tmp"))).toEqual(status === 0 ? ["run-before"] : []);
});

test("passes hostile parameters to the command unchanged and returns them as data", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await writeFile(join(directory, "echo.cjs"), "console.log(JSON.stringify({ argv: process.argv.slice(2) }));");
  await open();
  const message = "a \"b\" 'c'\n--x $(id) `id` \u{1f600}";
  const id = coordinator.submit(
    { command: `${process.execPath} ${join(directory, "echo.cjs")}` },
    { parameters: { message, flag: true, dash: "--x" } },
  );
  expect(await waitForOutcome(coordinator, id)).toMatchObject({
    status: "completed",
    data: { argv: ["--message", message, "--flag", "--dash=--x"] },
  });
});

test("fails a run with its command's exit code and stderr", async () => {
  const coordinator = createMemoryCoordinator();
  await (await setUp(coordinator)).open();
  const id = coordinator.submit(sh("echo it is wrong >&2; exit 7"));
  expect(await waitForOutcome(coordinator, id)).toMatchObject({
    status: "failed",
    reason: "exit_nonzero",
    exit_code: 7,
    message: "it is wrong",
  });
  const missing = coordinator.submit({ command: "scripts/nosuch" });
  expect(await waitForOutcome(coordinator, missing)).toMatchObject({ status: "failed", reason: "command_not_found" });
});

test("redacts secrets from events, results and the log before they are written", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await open();
  const id = coordinator.submit(sh("printf canary-6f1d; sleep 0.2; printf 20b7e4; cat"), {
    parameters: { key: "canary-6f1d20b7e4" },
  });
  const log = () => readFileSync(join(directory, "logs", `${id}.1.jsonl`), "utf8");
  await poll(() => existsSync(join(directory, "logs", `${id}.1.jsonl`)) && log().includes("execution_started")).toBe(
    true,
  );
  expect(log()).not.toContain("canary-6f1d20b7e4");
  await waitForOutcome(coordinator, id);
  const recordedText = JSON.stringify([coordinator.events(id), coordinator.runs.get(id)!.outcome]);
  expect(recordedText).not.toContain("canary-6f1d20b7e4");
  expect(getText(coordinator, id)).toBe("[redacted:TEST_API_KEY]");
});

test("writes the log of an autonomous run line by line, and keeps it when the run has finished", async () => {
  const coordinator = createMemoryCoordinator();
  let finish!: () => void;
  const mayFinish = new Promise<void>((resolve) => (finish = resolve));
  const { open, directory, logs } = await setUp(coordinator, {
    executor: {
      name: "talking",
      can: { resume: false, fork: false, ask: false, input: false },
      async run(_invocation, { emit }) {
        await emit({ type: "assistant", text: "while it runs" });
        await mayFinish;
        return { status: "completed", exit_code: null, text: "done" };
      },
    },
  });
  await open();
  const id = coordinator.submit({ type: "autonomous" });
  const log = (): string => {
    const path = join(directory, "logs", `${id}.1.jsonl`);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  await poll(log).toContain("while it runs");
  finish();
  const procedural = coordinator.submit({ type: "procedural" });
  await poll(() => coordinator.runs.get(procedural)!.status).toBe("completed");
  await poll(log).toMatch(/"outcome":.*\n{"shipped":true}\n$/);
  await poll(logs).toEqual([`${id}.1.jsonl`]);
  // The next runner has nothing to ship.
  const before = coordinator.events(id);
  await (await open()).stop();
  expect(coordinator.events(id)).toEqual(before);
});

test("records all output of a command before its end, even half a character or the start of a possible secret", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await writeFile(join(directory, "half.sh"), "printf 'x\\303'; printf 'canary-6f' >&2");
  await open();
  const id = coordinator.submit({ command: `sh ${join(directory, "half.sh")}` });
  await waitForOutcome(coordinator, id);
  const events = coordinator.events(id);
  expect(events.at(-1)).toMatchObject({ type: "execution_ended", execution: { stdout_bytes: 2, stderr_bytes: 9 } });
  const readOutput = (stream: string) =>
    Buffer.concat(
      events.flatMap((event) => (event.type === "output" && event.stream === stream ? [getOutputBytes(event)] : [])),
    ).toString("latin1");
  expect([readOutput("stdout"), readOutput("stderr")]).toEqual(["x\xc3", "canary-6f"]);
});

test("cancels a run on request, and fails a run with timeout at its time limit", async () => {
  const coordinator = createMemoryCoordinator();
  await (await setUp(coordinator)).open();
  const stopped = coordinator.submit({ command: "sleep 1000" });
  const late = coordinator.submit({ command: "sleep 1000", timeout_seconds: 0.3 });
  expect(await waitForOutcome(coordinator, late)).toMatchObject({ status: "failed", reason: "timeout" });
  coordinator.order(stopped, { stop: "user" });
  expect(await waitForOutcome(coordinator, stopped)).toEqual({ status: "cancelled", by: "user" });
});

test("executes at most as many runs as it has slots, and fills a freed slot", async () => {
  const coordinator = createMemoryCoordinator();
  const { open } = await setUp(coordinator, { slots: 2 });
  const runner = await open();
  const ids = Array.from({ length: 8 }, () => coordinator.submit({ command: "sleep 0.1" }));
  let maxRunning = 0;
  await poll(() => {
    maxRunning = Math.max(maxRunning, runner.running);
    return ids.every((id) => coordinator.runs.get(id)!.outcome !== null);
  }).toBe(true);
  expect(maxRunning).toBe(2);
});

test("refuses to work outside the runner's directories, even through a symlink, or if the path is not valid text", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await symlink("/", join(directory, "out"));
  const notUtf8 = Buffer.concat([Buffer.from(join(directory, "caf")), Buffer.from([0xe9])]);
  await mkdir(notUtf8);
  await symlink(notUtf8, join(directory, "in"));
  await open();
  const names = ["out/etc", "missing", "in", "nul\0"].map((name) => join(directory, name));
  for (const project_dir of ["/", "relative", ...names]) {
    const id = coordinator.submit({ command: "true" }, { project_dir });
    expect(await waitForOutcome(coordinator, id)).toMatchObject({
      status: "failed",
      reason: "refused",
      message: expect.stringContaining("project_dir"),
    });
  }
});

test("loses no event and no run in an outage", async () => {
  const coordinator = createMemoryCoordinator({ leaseMs: 3000 });
  const { open } = await setUp(coordinator, { logs: { memoryBytes: 2000 } });
  await open();
  const ids = Array.from({ length: 3 }, () =>
    coordinator.submit(
      sh("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo line $i; sleep 0.2; done"),
    ),
  );
  await poll(() => ids.every((id) => coordinator.events(id).some(({ type }) => type === "output"))).toBe(true);
  coordinator.faults.away = "down";
  await new Promise((resolve) => setTimeout(resolve, 3500));
  coordinator.faults.away = null;
  for (const id of ids) {
    expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed" });
    expect(getText(coordinator, id)).toBe(Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join(""));
    expectDense(coordinator, id);
    expect(coordinator.runs.get(id)!.attempt).toBe(1);
  }
});

test("tolerates lost responses and duplicate requests", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, logs } = await setUp(coordinator);
  let turn = 0;
  coordinator.faults.loseAnswer = (call) => call !== "register" && ++turn % 2 === 0;
  coordinator.faults.twice = true;
  await open();
  const ids = Array.from({ length: 12 }, (_, i) => coordinator.submit(sh(`echo run ${i}`)));
  for (const [i, id] of ids.entries()) {
    expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed", text: `run ${i}\n` });
    expect(coordinator.events(id).filter(({ type }) => type === "execution_started")).toHaveLength(1);
    expect(coordinator.runs.get(id)!.attempt).toBe(1);
    expectDense(coordinator, id);
  }
  await poll(logs).toEqual([]);
});

test("registers again with a coordinator that has forgotten the runner", async () => {
  const coordinator = createMemoryCoordinator();
  await (await setUp(coordinator)).open();
  const id = coordinator.submit({ command: "sleep 0.5" });
  await poll(() => coordinator.runs.get(id)!.status).toBe("running");
  coordinator.forgetRunners();
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed" });
  expect(coordinator.calls.register).toBeGreaterThan(1);
});

test("stops a fenced run, no longer reports it and removes its log", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, logs } = await setUp(coordinator);
  const runner = await open();
  const id = coordinator.submit({ command: "sleep 1000" });
  await poll(() => coordinator.events(id).some(({ type }) => type === "execution_started")).toBe(true);
  const before = coordinator.events(id).length;
  coordinator.fence(id);
  await poll(() => runner.running).toBe(0);
  await poll(logs).toEqual([]);
  expect(coordinator.events(id)).toHaveLength(before);
});

test("stops its runs when no report is answered for longer than the lease", async () => {
  const coordinator = createMemoryCoordinator({ leaseMs: 3000 });
  const { open, notices } = await setUp(coordinator);
  const runner = await open();
  const id = coordinator.submit({ command: "sleep 1000" });
  await poll(() => coordinator.events(id).some(({ type }) => type === "execution_started")).toBe(true);
  coordinator.faults.away = "silent";
  await poll(() => runner.running).toBe(0);
  expect(notices.join("\n")).toContain("the lease has expired");
  coordinator.faults.away = null;
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "failed", reason: "runner_lost" });
});

test("claims no run while its reports are not answered, and claims runs again once they are", async () => {
  const coordinator = createMemoryCoordinator({ leaseMs: 3000 });
  const { open, notices } = await setUp(coordinator);
  const runner = await open();
  const id = coordinator.submit({ command: "sleep 1000" });
  await poll(() => coordinator.events(id).some(({ type }) => type === "execution_started")).toBe(true);
  coordinator.faults.loseAnswer = (call) => call === "report";
  await poll(() => runner.running).toBe(0);
  expect(notices.join("\n")).toContain("the lease has expired");
  const later = coordinator.submit(sh("echo hello"));
  const polls = coordinator.calls.poll;
  await poll(() => coordinator.calls.poll).toBeGreaterThan(polls + 1);
  expect(coordinator.runs.get(later)).toMatchObject({ status: "pending", attempt: 0 });
  coordinator.faults.loseAnswer = () => false;
  expect(await waitForOutcome(coordinator, later)).toMatchObject({ status: "completed", text: "hello\n" });
});

test("stops its runs by the lease of its latest registration", async () => {
  const coordinator = createMemoryCoordinator();
  const { register } = coordinator.port;
  let leaseMs = 3_600_000;
  coordinator.port.register = async (registration) => ({ ...(await register(registration)), lease_ms: leaseMs });
  const runner = await (await setUp(coordinator)).open();
  leaseMs = 3000;
  coordinator.forgetRunners();
  await poll(() => coordinator.calls.register).toBe(2);
  const id = coordinator.submit({ command: "sleep 1000" });
  await poll(() => coordinator.events(id).some(({ type }) => type === "execution_started")).toBe(true);
  coordinator.faults.away = "silent";
  await poll(() => runner.running).toBe(0);
});

test("reports each shortage of file descriptors once, with its profile, until it is over", async () => {
  const coordinator = createMemoryCoordinator({ holdMs: 20 });
  const { open, notices } = await setUp(coordinator, { slots: 4 });
  const limit = 16 * 1000;
  let free = limit;
  await open({ countDescriptors: () => ({ open: limit - free, limit }) });
  const completeRun = async () =>
    expect(await waitForOutcome(coordinator, coordinator.submit({ command: "true" }))).toMatchObject({
      status: "completed",
    });
  const waitForPolls = async () => {
    const before = coordinator.calls.poll;
    await poll(() => coordinator.calls.poll).toBeGreaterThan(before + 2);
  };
  const notice = `the runner of profile test has free slots, but takes no run until file descriptors are free: this process has ${limit} of`;

  free = 0;
  await poll(() => notices).toEqual([expect.stringContaining(notice)]);
  // Enough for one run, but not for all free slots.
  free = 16;
  await completeRun();
  free = 0;
  await waitForPolls();
  expect(notices).toHaveLength(1);

  free = limit;
  await completeRun();
  free = 0;
  await poll(() => notices).toEqual([expect.stringContaining(notice), expect.stringContaining(notice)]);
  await waitForPolls();
  expect(notices).toHaveLength(2);
});

test("a drain lets runs finish and takes no new ones", async () => {
  const coordinator = createMemoryCoordinator();
  const runner = await (await setUp(coordinator)).open();
  const id = coordinator.submit({ command: "sleep 0.5" });
  await poll(() => coordinator.runs.get(id)!.status).toBe("running");
  const drained = runner.drain();
  const later = coordinator.submit({ command: "true" });
  await drained;
  expect(coordinator.runs.get(id)!.outcome).toMatchObject({ status: "completed" });
  expect(coordinator.runs.get(later)!).toMatchObject({ status: "pending", attempt: 0, log: [] });
  expect(coordinator.calls.deregister).toBe(1);
});

test("a drain stops runs that do not finish in time, and gives them back without counting a failure", async () => {
  const coordinator = createMemoryCoordinator();
  const { open } = await setUp(coordinator, { times: { drainMs: 200 } });
  const runner = await open();
  const id = coordinator.submit({ command: "sleep 1000" });
  await poll(() => coordinator.runs.get(id)!.status).toBe("running");
  await runner.drain();
  expect(coordinator.runs.get(id)!).toMatchObject({ status: "pending", failures: 0, outcome: null });
});

test("keeps the outcome for its next start if it is stopped while the coordinator is unreachable", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, logs } = await setUp(coordinator, { times: { shutdownMs: 200 } });
  const runner = await open();
  const id = coordinator.submit(sh("echo half; sleep 1000"));
  await poll(() => getText(coordinator, id)).toBe("half\n");
  coordinator.faults.away = "down";
  await runner.stop();
  expect(await logs()).toEqual([`${id}.1.jsonl`]);
  coordinator.faults.away = null;
  await open();
  await poll(() => coordinator.runs.get(id)!.attempt).toBe(2);
  expect(coordinator.runs.get(id)!.failures).toBe(0);
});

test("ends a run that its dead runner left without an outcome, ships its events and kills its orphans", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory, logs, options } = await setUp(coordinator);
  const id = coordinator.submit({ command: "true" });
  const { runner_id, epoch } = await coordinator.port.register(options().registration);
  await coordinator.port.poll({ runner_id, epoch, claim_id: "c", want: 1, ack_order: 0 }, new AbortController().signal);
  mkdirSync(join(directory, "logs"));
  const orphan = spawn("sleep", ["1000"], {
    env: { ...process.env, DROVER_EXECUTION_ID: `dead-${id}` },
    stdio: "ignore",
  });
  cleanups.push(async () => void orphan.kill("SIGKILL"));
  await poll(() => findOrphans([`dead-${id}`]).length).toBe(1);
  const at = new Date().toISOString();
  const execution = {
    execution_id: `dead-${id}`,
    command: "true",
    argv: ["true"],
    working_directory: "/",
    started_at: at,
    timeout_ms: null,
    owner: { pid: 1, start: "", host: "" },
    correlation: {},
  };
  const lines = [
    { run_id: id, attempt: 1, runner: "test" },
    { attempt: 1, n: 1, at, event: { type: "status", status: "running" } },
    { attempt: 1, n: 2, at, event: { type: "execution_started", execution } },
  ];
  writeFileSync(
    join(directory, "logs", `${id}.1.jsonl`),
    `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"attempt":1,"n":3,"at":"20`,
  );
  await open();
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "failed", reason: "runner_lost" });
  expect(coordinator.events(id).map(({ type }) => type)).toEqual(["status", "execution_started", "execution_ended"]);
  expect(coordinator.events(id).at(-1)).toMatchObject({ execution: { interrupted: true } });
  expect(findOrphans([`dead-${id}`])).toEqual([]);
  await poll(logs).toEqual([]);
});
