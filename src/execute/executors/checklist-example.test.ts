import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { createMemoryCoordinator } from "../../../test/fixtures/execute/memory-port.ts";
import { waitForOutcome, poll, prepareRunners } from "../../../test/fixtures/execute/registered.ts";
import { start } from "../../process/start.ts";
import { loadModuleExecutor } from "./module-executor.ts";

const { setUp, cleanups } = prepareRunners();

async function loadChecklist() {
  const cacheDirectory = await mkdtemp(join(tmpdir(), "drover-asking-"));
  cleanups.push(() => rm(cacheDirectory, { recursive: true, force: true }));
  return loadModuleExecutor({
    module: resolve("examples/executors/checklist.ts"),
    runnerDirectory: resolve("examples"),
    cacheDirectory,
    config: {},
    start,
    env: process.env,
  });
}

test("examples/executors/checklist.ts handles answers and input, and continues on another runner", async () => {
  const executor = await loadChecklist();
  const coordinator = createMemoryCoordinator();
  const firstRunner = await (await setUp(coordinator, { executor })).open();
  const id = coordinator.submit(
    { type: "autonomous" },
    { attended: true, parameters: { steps: ["wash", "dry", "iron"] } },
  );
  const run = () => coordinator.runs.get(id)!;
  const questionIds = () =>
    coordinator.events(id).flatMap((event) => (event.type === "permission_request" ? [event.request_id] : []));

  await poll(questionIds).toEqual(["step-1"]);
  coordinator.order(id, { input: { text: "fold", seq: 1 } });
  coordinator.answer(id, "step-1", { decision: "allow" });
  await poll(questionIds).toEqual(["step-1", "step-2"]);
  coordinator.answer(id, "step-2", { decision: "allow", input: { step: "dry slowly" } });
  await poll(questionIds).toEqual(["step-1", "step-2", "step-3"]);
  await firstRunner.drain();
  expect(run().status).toBe("parked");

  await (await setUp(coordinator, { executor })).open();
  coordinator.answer(id, "step-3", { decision: "deny" });
  // The third step's question is not asked again.
  await poll(questionIds).toEqual(["step-1", "step-2", "step-3", "step-4"]);
  coordinator.answer(id, "step-4", { decision: "allow" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed", text: "4 steps" });
  expect([...run().uploads.values()].map(String)).toEqual(["wash\ndry slowly\nfold\n"]);
});

test("examples/executors/checklist.ts counts one step in the singular", async () => {
  const coordinator = createMemoryCoordinator();
  await (await setUp(coordinator, { executor: await loadChecklist() })).open();
  const id = coordinator.submit({ type: "autonomous" }, { attended: true, parameters: { steps: ["wash"] } });
  await poll(() => coordinator.events(id).some(({ type }) => type === "permission_request")).toBe(true);
  coordinator.answer(id, "step-1", { decision: "allow" });
  expect(await waitForOutcome(coordinator, id)).toMatchObject({ status: "completed", text: "1 step" });
});

test("shows examples/executors/checklist.ts unchanged in the manual", async () => {
  const source = await readFile("examples/executors/checklist.ts", "utf8");
  expect(await readFile("docs/writing-executors.md", "utf8")).toContain(source);
});
