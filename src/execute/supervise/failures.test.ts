import { readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { FixtureOptions } from "../../../test/fixtures/execute/open-runner.ts";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { waitForOutcome, poll, prepareRunners, sh } from "../../../test/fixtures/execute/registered.ts";

const { setUp } = prepareRunners();

test("fails a run with internal if its log cannot be written", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await open();
  await writeFile(join(directory, "logs"), "not a directory");
  const id = coordinator.submit({ command: "true" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({
    status: "failed",
    reason: "internal",
    message: expect.stringContaining("cannot be written"),
  });
  expect(coordinator.events(id).some(({ type }) => type === "execution_started")).toBe(false);
});

test("fails a run without a log even if its executor completes", async () => {
  const coordinator = createMemoryCoordinator();
  const executor: FixtureOptions["executor"] = {
    name: "careless",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(_invocation, context) {
      await context.emit({ type: "assistant", text: "nobody will read this" });
      return { status: "completed", exit_code: 0, text: "all is well" };
    },
  };
  const { open, directory } = await setUp(coordinator, { executor });
  await open();
  await writeFile(join(directory, "logs"), "not a directory");
  const id = coordinator.submit({});
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "failed", reason: "internal" });
});

test("redacts events and outcomes of an executor, whatever their shape", async () => {
  const coordinator = createMemoryCoordinator();
  const secret = "canary-6f1d20b7e4";
  const executor: FixtureOptions["executor"] = {
    name: "talkative",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(_invocation, context) {
      await context.emit({ type: "tool_use", tool_use_id: "t", name: "x", input: { deep: [{ key: secret }] } });
      return { status: "completed", exit_code: 0, text: `it is ${secret}`, data: { [secret]: secret } };
    },
  };
  await (await setUp(coordinator, { executor })).open();
  const id = coordinator.submit({});
  await waitForOutcome(coordinator, id);
  expect(JSON.stringify(coordinator.events(id))).not.toContain(secret);
  expect(JSON.stringify(coordinator.runs.get(id)!.outcome)).not.toContain(secret);
});

test("fails a run with limit_exceeded when its log reaches the maximum size", async () => {
  const coordinator = createMemoryCoordinator();
  const { open } = await setUp(coordinator, { logs: { maxBytes: 300_000 } });
  await open();
  const id = coordinator.submit({ command: "yes" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "failed", reason: "limit_exceeded" });
  expect(coordinator.events(id).at(-1)).toMatchObject({ type: "execution_ended" });
});

test("drops the parts of an outcome that are too large for a report, and records that", async () => {
  const coordinator = createMemoryCoordinator();
  const huge = "x".repeat(18 * 1024 * 1024);
  const executor: FixtureOptions["executor"] = {
    name: "huge",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(_invocation, context) {
      await context.emit({ type: "assistant", text: huge });
      return { status: "completed", exit_code: 0, text: "fine", data: { huge } };
    },
  };
  await (await setUp(coordinator, { executor })).open();
  const id = coordinator.submit({});
  expect(await waitForOutcome(coordinator, id)).toEqual({ status: "completed", exit_code: 0, text: "fine" });
  expect(coordinator.events(id).flatMap((event) => (event.type === "error" ? [event.code] : []))).toEqual([
    "result_truncated",
  ]);
  const message = coordinator.events(id).find((event) => event.type === "assistant");
  expect(message).toMatchObject({ truncated: true });
  expect(JSON.stringify(message).length).toBeLessThan(1024 * 1024);
});

test("an executor that throws fails its run with a readable message, and the runner continues", async () => {
  const coordinator = createMemoryCoordinator();
  const executor = {
    name: "broken",
    can: { resume: false, fork: false, ask: false, input: false },
    run: () => Promise.reject(new Error("secret stack")),
  };
  const { open, notices } = await setUp(coordinator, { executor });
  await open();
  const id = coordinator.submit({ command: "true" });
  const outcome = await waitForOutcome(coordinator, id);
  expect(outcome).toMatchObject({ status: "failed", reason: "internal" });
  expect(JSON.stringify(outcome)).not.toContain("secret stack");
  expect(notices.join("\n")).toContain("secret stack");
});

test("runs on_finish once, before the result, and its failure does not change the run", async () => {
  const coordinator = createMemoryCoordinator();
  const { open, directory } = await setUp(coordinator);
  await writeFile(
    join(directory, "after.sh"),
    `#!/bin/sh\necho "$DROVER_RUN_STATUS/$DROVER_RUN_REASON/$DROVER_EXIT_CODE" >> ${join(directory, "ending")}\necho broken >&2\nexit 3\n`,
  );
  await chmod(join(directory, "after.sh"), 0o755);
  await open();
  const id = coordinator.submit({ ...sh("exit 4"), on_finish: "./after.sh" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({
    status: "failed",
    reason: "exit_nonzero",
    exit_code: 4,
  });
  expect(readFileSync(join(directory, "ending"), "utf8")).toBe("failed/exit_nonzero/4\n");
  expect(coordinator.events(id).filter(({ type }) => type === "execution_ended")).toHaveLength(2);
  expect(coordinator.events(id)).toContainEqual({
    type: "error",
    code: "on_finish",
    message: expect.stringContaining("broken"),
  });
});

test("delivers a person's message to the executor of a run in progress", async () => {
  const coordinator = createMemoryCoordinator();
  const executor: FixtureOptions["executor"] = {
    name: "listening",
    can: { resume: false, fork: false, ask: false, input: true },
    async run(_invocation, context) {
      await context.emit({ type: "assistant", text: "listening" });
      for await (const { text } of context.input) return { status: "completed", exit_code: null, text };
      return { status: "completed", exit_code: null, text: null };
    },
  };
  await (await setUp(coordinator, { executor })).open();
  const id = coordinator.submit({}, { attended: true });
  await poll(() => coordinator.events(id).some(({ type }) => type === "assistant")).toBe(true);
  coordinator.order(id, { input: { text: "go on", seq: 1 } });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ text: "go on" });
});
