import { afterAll, expect, it } from "vitest";
import { newId, sampleAgent } from "../../test/fixtures/dispatch/host.ts";
import { eachEngine } from "../../test/fixtures/record/each-engine.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { createAgentRegistry } from "../dispatch/agent-registry.ts";
import { type RunRequest, runRequestSchema } from "../model/run-request.ts";
import type { CreateRun } from "../model/store.ts";
import { submitRun, type Submitter } from "./submit.ts";

const schemas = openSchemaChecker();
afterAll(() => schemas.stop());

eachEngine("runs that commands inside a run submit", (record) => {
  const ask = async (request: Partial<RunRequest>, parentAttempt?: Submitter["parentAttempt"], subject = "ann") => {
    const { store } = record;
    const agents = createAgentRegistry(store);
    agents.setFileAgents([sampleAgent()]);
    const { idempotency_key, ...body } = request;
    const fullRequest = {
      ...runRequestSchema.parse({ agent_name: "echo", ...body }),
      ...(parentAttempt === undefined ? {} : { parent_run_id: parentAttempt.run_id }),
      ...(idempotency_key === undefined ? {} : { idempotency_key }),
    };
    const submitter: Submitter = { subject, role: "user", ...(parentAttempt === undefined ? {} : { parentAttempt }) };
    const createRun = async (create: CreateRun) => (await store.apply([create]))[0];
    const result = await submitRun(fullRequest, submitter, {
      store,
      createRun,
      agents,
      schemas,
      now: record.now,
      newId,
    });
    return result.ok ? { run_id: result.run.run_id, repeated: result.repeated } : { code: result.fault.code };
  };

  const startParent = async (name = "parents") => {
    const { driver } = record;
    const run_id = await driver.submit({ demands: { runner_id: name }, created_by: "ann" });
    const runner = await driver.register(name);
    expect(await driver.claim(runner)).toEqual([run_id]);
    return { runner, parentAttempt: { run_id, attempt: 1 } };
  };
  const stop = (run_id: string) =>
    record.store.apply([{ op: "stop_runs", run_ids: [run_id], reason: "user", by: "ann" }]);
  const refusedInside = { code: "DROVER-SUB-008" };

  it("are the run's children while it is running", async () => {
    const { parentAttempt, runner } = await startParent();
    expect(await ask({}, parentAttempt)).toMatchObject({ repeated: false });
    await record.driver.append(runner, parentAttempt.run_id, 1, 1, { type: "status", status: "running" });
    expect(await ask({}, parentAttempt)).toMatchObject({ repeated: false });
  });

  it("are refused once the run is being stopped, also with a new key, and nothing is stored", async () => {
    const { parentAttempt } = await startParent();
    const firstResult = await ask({ idempotency_key: "k" }, parentAttempt);
    await stop(parentAttempt.run_id);
    expect(await record.driver.statuses(parentAttempt.run_id)).toEqual(["stopping"]);
    expect(await ask({}, parentAttempt)).toEqual(refusedInside);
    expect(await ask({ idempotency_key: "new" }, parentAttempt)).toEqual(refusedInside);
    expect(await ask({ idempotency_key: "k" }, parentAttempt)).toEqual({ ...firstResult, repeated: true });
    expect(await record.store.read.runs({ parent_run_id: parentAttempt.run_id }, { limit: 10 })).toHaveLength(1);
  });

  it("are refused in the same transaction as the stop", async () => {
    const { parentAttempt } = await startParent();
    const results = await Promise.all([
      stop(parentAttempt.run_id),
      ...Array.from({ length: 5 }, () => ask({}, parentAttempt)),
    ]);
    const accepted = results.slice(1).filter((answer) => "run_id" in answer);
    const children = await record.store.read.runs({ parent_run_id: parentAttempt.run_id }, { limit: 10 });
    expect(children).toHaveLength(accepted.length);
    expect(await ask({}, parentAttempt)).toEqual(refusedInside);
  });

  it("are refused if the run has finished, has another attempt or does not exist", async () => {
    const { parentAttempt, runner } = await startParent();
    expect(await ask({}, { ...parentAttempt, attempt: 2 })).toEqual(refusedInside);
    expect(await ask({}, { ...parentAttempt, attempt: 0 })).toEqual(refusedInside);
    expect(await ask({}, { run_id: newId(), attempt: 1 })).toEqual(refusedInside);
    await record.driver.finish(runner, parentAttempt.run_id, 1);
    expect(await ask({}, parentAttempt)).toEqual(refusedInside);
    const pending = await record.driver.submit({ demands: { runner_id: "nobody" } });
    expect(await ask({}, { run_id: pending, attempt: 0 })).toEqual(refusedInside);
  });

  it("have their own idempotency keys, separate from those of its owner and of other runs", async () => {
    const [one, two] = [await startParent("one"), await startParent("two")];
    const key = { idempotency_key: "deploy" };
    const ownersResult = await ask(key);
    const results = [
      ownersResult,
      await ask(key, one.parentAttempt),
      await ask(key, two.parentAttempt),
      await ask(key, undefined, "kim"),
    ];
    expect(results.map((result) => "repeated" in result && result.repeated)).toEqual([false, false, false, false]);
    expect(await ask(key)).toEqual({ ...ownersResult, repeated: true });
    expect(await ask(key, one.parentAttempt)).toEqual({ ...results[1], repeated: true });
    // The keys do not conflict.
    expect(await ask({ ...key, priority: 3 }, one.parentAttempt)).toEqual({ code: "DROVER-SUB-004" });
    expect(await ask({ idempotency_key: "other", priority: 3 }, one.parentAttempt)).toMatchObject({ repeated: false });
    expect(await ask({ idempotency_key: "other" })).toMatchObject({ repeated: false });
  });

  it("cannot use up a key before its owner does", async () => {
    const { parentAttempt } = await startParent();
    const runsResult = await ask({ idempotency_key: "nightly" }, parentAttempt);
    const ownersResult = await ask({ idempotency_key: "nightly", priority: 9 });
    expect(ownersResult).toMatchObject({ repeated: false });
    expect(ownersResult).not.toMatchObject({ run_id: "run_id" in runsResult ? runsResult.run_id : "" });
  });

  it("are at most 100 at a time, and at most eight deep", async () => {
    const { parentAttempt } = await startParent();
    const children = await Promise.all(Array.from({ length: 100 }, () => ask({}, parentAttempt)));
    expect(children.every((answer) => "run_id" in answer)).toBe(true);
    expect(await ask({}, parentAttempt)).toEqual({ code: "DROVER-SUB-009" });
    // A user may still submit, and so may the run once a child has finished.
    expect(await ask({ parent_run_id: parentAttempt.run_id })).toMatchObject({ repeated: false });
    await stop("run_id" in children[0]! ? children[0].run_id : "");
    await stop("run_id" in children[1]! ? children[1].run_id : "");
    expect(await ask({}, parentAttempt)).toMatchObject({ repeated: false });

    let parentId = parentAttempt.run_id;
    for (let depth = 1; depth < 8; depth += 1) parentId = await record.driver.submit({ parent_run_id: parentId });
    expect(await ask({ parent_run_id: parentId })).toMatchObject({ repeated: false });
    parentId = await record.driver.submit({ parent_run_id: parentId });
    expect(await ask({ parent_run_id: parentId })).toEqual({ code: "DROVER-SUB-007" });
  });
});
