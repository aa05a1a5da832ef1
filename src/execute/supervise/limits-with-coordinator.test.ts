import { afterEach, expect, it } from "vitest";
import { sampleAgent, serve } from "../../../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { poll } from "../../../test/fixtures/execute/registered.ts";
import { eachEngine } from "../../../test/fixtures/record/each-engine.ts";
import type { ModelRequest, Turn } from "../../../test/model-server/script.ts";
import { startModelServer } from "../../../test/model-server/server.ts";
import type { Agent } from "../../model/agent.ts";
import { createModelExecutor } from "../executors/loop/model-executor.ts";

const cleanups: (() => unknown)[] = [];
let ids = 0;

eachEngine("limits with a real coordinator", (record) => {
  afterEach(async () => {
    for (const clean of cleanups.splice(0).toReversed()) await clean();
  });

  async function setUp(agent: Partial<Agent>, script: (request: ModelRequest) => Turn) {
    const server = await startModelServer(script);
    const host = serve(record.store, { clock: record });
    await host.dispatcher.start();
    cleanups.push(server.stop, host.close);
    host.agents.setFileAgents([sampleAgent({ type: "autonomous", provider: "anthropic", model: "m", ...agent })]);
    const executor = createModelExecutor({
      env: { ANTHROPIC_API_KEY: "key" },
      newId: () => `conversation-${++ids}`,
      version: "0",
      checkInput: async () => [],
      now: record.now,
    });
    const fixture = runnerFixture({ port: host.port, executor, slots: 3, supervise: { now: record.now } });
    const { registration } = fixture.options();
    const config = { base_url: server.url, price: { input: 1000, output: 0 } };
    const runner = await fixture.open({ registration: { ...registration, executor: { type: "test", config } } });
    cleanups.push(fixture.remove, runner.stop);
    const statuses = async (run_ids: string[]) =>
      [...new Set((await Promise.all(run_ids.map(host.run))).map(({ status }) => status))].sort();
    return { ...host, server, statuses };
  }

  it("parks ten runs that hit one usage limit, and continues all of them in their sessions when it resets", async () => {
    let isLimited = true;
    const limit = { error: { status: 429, message: "limit", headers: { "retry-after": "3600" } } };
    const { submit, run, statuses } = await setUp({}, () => (isLimited ? limit : { text: "done" }));
    const run_ids = await Promise.all(Array.from({ length: 10 }, () => submit({ prompt: "go" })));
    await poll(() => statuses(run_ids)).toEqual(["parked"]);
    const before = await Promise.all(run_ids.map(run));
    expect(new Set(before.map(({ parked_why }) => parked_why))).toEqual(new Set(["usage_limit"]));
    isLimited = false;
    record.advance(3_601_000);
    await poll(() => statuses(run_ids)).toEqual(["completed"]);
    const after = await Promise.all(run_ids.map(run));
    expect(after.map(({ session_id }) => session_id)).toEqual(before.map(({ session_id }) => session_id));
    expect(after.every(({ failures }) => failures === 0)).toBe(true);
  });

  it("parks a run that has spent its budget after one turn, and resumes it with the same budget again", async () => {
    const tool = (n: number): Turn => ({
      tool: { name: "file_list", input: { pattern: `*.${n}` }, exact: true },
      usage: { input_tokens: 100, output_tokens: 1 },
    });
    const { submit, run, statuses, server } = await setUp({ budget: { cost_usd: 0.15 } }, ({ messages }) => {
      const answers = messages.filter(({ role }) => role === "assistant").length;
      return answers < 3 ? tool(answers) : { text: "done", usage: { input_tokens: 100, output_tokens: 1 } };
    });
    const id = await submit({ prompt: "go" });
    await poll(() => statuses([id])).toEqual(["parked"]);
    expect(await run(id)).toMatchObject({ parked_why: "budget", usage: { input_tokens: 200, cost_usd: 0.2 } });
    expect(server.requests).toHaveLength(2);
    await record.store.apply([{ op: "resume_run", run_id: id, by: "bob" }]);
    await poll(() => statuses([id])).toEqual(["completed"]);
    expect(await run(id)).toMatchObject({ usage: { input_tokens: 400, cost_usd: 0.4 }, failures: 0 });
  });

  it("parks the runs of an agent that has spent its daily budget until the next day", async () => {
    let turns = 0;
    const { submit, run, statuses } = await setUp({ budget: { per_day: { tokens: 300 } } }, ({ messages }) => {
      turns += 1;
      if (messages.filter(({ role }) => role === "assistant").length > 4) return { text: "done" };
      return {
        tool: { name: "file_list", input: { pattern: `*.${turns}` }, exact: true },
        usage: { input_tokens: 100, output_tokens: 1 },
      };
    });
    const id = await submit({ prompt: "go" });
    await poll(() => statuses([id])).toEqual(["parked"]);
    expect(turns).toBe(3);
    const later = await submit({ prompt: "go" });
    await poll(() => statuses([id, later])).toEqual(["parked"]);
    expect(turns).toBe(3);
    expect(await run(id)).toMatchObject({ parked_why: "budget", parked_until: "2026-03-02T00:00:00.000Z" });
    record.advance(24 * 3_600_000);
    await poll(async () => turns).toBeGreaterThan(3);
  });
});
