import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { drive } from "../../test/fixtures/dispatch/drive.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";

describe.each(["SQLite", "PostgreSQL"])("a chain on %s", (engine) => {
  let database: FreshDatabase | null = null;
  const coordinators: TestCoordinator[] = [];
  const secret = randomBytes(32);
  const start = async (options: { stateDirectory?: string } = {}): Promise<TestCoordinator> => {
    const coordinator = await startTestCoordinator({
      deliveries: { everyMs: 20 },
      ...(database === null ? {} : { database: { url: database.url, secret } }),
      ...options,
    });
    coordinators.push(coordinator);
    return coordinator;
  };
  beforeEach(async () => {
    if (engine === "PostgreSQL") database = await freshDatabase();
  });
  afterEach(async () => {
    for (const coordinator of coordinators.splice(0)) {
      await coordinator.dispose();
      expect(coordinator.defects).toEqual([]);
    }
    await database?.drop();
  });

  const parameters_schema = {
    type: "object",
    properties: { what: { type: "string" } },
    required: ["what"],
    additionalProperties: false,
  };
  const defineAgents = async ({ client }: TestCoordinator, chain: object = {}) => {
    const on_finish = { agent: "review", parameters: { what: { from: "/result_data/change" } }, ...chain };
    await client.agents.put("change", { type: "procedural", command: "true", on_finish });
    await client.agents.put("review", { type: "procedural", command: "true", parameters_schema });
  };
  const finishRun = async ({ client, store }: TestCoordinator, result_data: unknown, parameters = {}) => {
    const d = drive(store, () => new Date());
    const runner = await d.register("r");
    // The runner takes only this run, so follow-up runs stay pending.
    const demands = { runner_id: "r" };
    const project_dir = "/srv/project";
    const { run_id } = await client.submit({ agent_name: "change", parameters, project_dir, demands, priority: 1 });
    expect(await d.claim(runner)).toEqual([run_id]);
    const result = { type: "result", status: "completed", reason: null, error: null, exit_code: 0 } as const;
    await d.finish(runner, run_id, 1, { result: { ...result, result_text: null, result_data } });
    return run_id;
  };
  const waitForChild = async ({ client }: TestCoordinator, parent_run_id: string) => {
    await expect
      .poll(async () => (await client.runs.list({ parent_run_id })).items.length, { timeout: 60_000 })
      .toBe(1);
    const [row] = (await client.runs.list({ parent_run_id })).items;
    return client.runs.get(row!.run_id);
  };

  it("submits a child of the run with values from its result", async () => {
    const coordinator = await start();
    await defineAgents(coordinator);
    const run_id = await finishRun(coordinator, { change: "a.ts" });
    expect(await waitForChild(coordinator, run_id)).toMatchObject({
      agent_name: "review",
      status: "pending",
      parent_run_id: run_id,
      trigger_type: "agent",
      parameters: { what: "a.ts" },
      project_dir: "/srv/project",
      created_by: "admin",
    });
  });

  it.each([
    ["the agent is gone", { agent: "nobody" }, "There is no agent nobody."],
    ["the parameters do not fit", { parameters: { what: 7 } }, "body.parameters.what: must be string"],
    ["the result lacks a value", { parameters: { what: { from: "/result_data/else" } } }, "/result_data/else for what"],
  ])("stores a failed child run if %s, and leaves the run unchanged", async (_, chain, why) => {
    const coordinator = await start();
    await defineAgents(coordinator, chain);
    const run_id = await finishRun(coordinator, { change: "a.ts" });
    expect(await waitForChild(coordinator, run_id)).toMatchObject({
      status: "failed",
      reason: "refused",
      error: expect.stringContaining(why),
      parent_run_id: run_id,
    });
    expect(await coordinator.client.runs.get(run_id)).toMatchObject({ status: "completed", reason: null, error: null });
  });

  it("refuses to copy a parameter whose secret is redacted", async () => {
    const coordinator = await start();
    await defineAgents(coordinator, { parameters: { what: { from: "/parameters/note" } } });
    const withSecret = await finishRun(coordinator, null, { note: `with ghp_${"a1B2".repeat(9)}` });
    expect(await waitForChild(coordinator, withSecret)).toMatchObject({
      status: "failed",
      reason: "refused",
      error: expect.stringContaining("/parameters/note for what"),
    });
    const withQuote = await finishRun(coordinator, null, { note: "why [redacted:github-token]?" });
    expect(await waitForChild(coordinator, withQuote)).toMatchObject({ status: "pending" });
  });

  it("submits the follow-up run once, even if several coordinators notice the end and one of them stops", async () => {
    const first = await start();
    await defineAgents(first);
    const others = engine === "PostgreSQL" ? [await start(), await start()] : [];
    const runs: string[] = [];
    for (let index = 0; index < 5; index += 1) runs.push(await finishRun(first, { change: "a.ts" }));
    await first.stop();
    const last = others[0] ?? (await start({ stateDirectory: first.directory }));
    for (const run_id of runs) expect(await waitForChild(last, run_id)).toMatchObject({ agent_name: "review" });
    expect((await last.client.runs.list({ agent_name: "review" })).items).toHaveLength(runs.length);
  });
});
