import { expect, it } from "vitest";
import { createAgent, output } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import { exportFrom } from "../audit/export.ts";
import type { Query } from "../query.ts";
import { pruneDispatch } from "../retention-dispatch.ts";
import { appendEvents } from "./append-events.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
const request = { type: "permission_request", request_id: "q", tool: "shell", input: { command: "ls" } } as const;

async function askQuestion({ driver }: EachRecord) {
  const runner = await driver.register("r");
  const run_id = await driver.submit({ session_id: "s", attended: true }, chat);
  await driver.claim(runner);
  await driver.append(runner, run_id, 1, 1, request, {
    type: "usage",
    usage: { input_tokens: 1, output_tokens: 1, cost_usd: null },
  });
  return { runner, run_id };
}

eachEngine("an answer", (record) => {
  it("is exported with the audit: who decided what about which tool, and when", async () => {
    const { run_id } = await askQuestion(record);
    const answer = { decision: "deny", message: "not here" } as const;
    await record.store.apply([{ op: "answer_question", run_id, request_id: "q", answer, by: "ann" }]);
    const lines: unknown[] = [];
    await exportFrom(record.store.engine, {}, (line) => void lines.push(JSON.parse(line)));
    expect(lines).toEqual([
      {
        eventType: "permission_decision",
        timestamp: record.now().toISOString(),
        runId: run_id,
        attempt: 1,
        requestId: "q",
        tool: "shell",
        asked: { command: "ls" },
        decision: "deny",
        by: "ann",
        message: "not here",
      },
    ]);
  });

  it("is removed with its run by retention, and so is the usage of its session", async () => {
    const { runner, run_id } = await askQuestion(record);
    await record.driver.finish(runner, run_id, 1, { last_n: 2 });
    // Retention keeps the run with the newest event.
    const last = await record.driver.submit({ session_id: "t" }, chat);
    expect(await record.driver.claim(runner)).toEqual([last]);
    record.advance(2 * 86_400_000);
    await pruneDispatch(record.store, record.now());
    const count = async (table: string) => (await record.rows(`select * from ${table}`)).length;
    expect([await count("questions"), await count("usage_sessions"), await count("usage_days")]).toEqual([0, 0, 1]);
  });

  it("costs nothing without questions: an attended run takes as many statements as any other", async () => {
    const { driver, store, now } = record;
    const countStatements = async (attended: boolean): Promise<number> => {
      const runner = await driver.register(`r${attended}`);
      const run_id = await driver.submit({ session_id: `s${attended}`, attended }, chat);
      await driver.claim(runner);
      const tx = {
        now: now(),
        audit: [],
        changes: { runs: new Set<string>(), claimable: [], runnersWithOrders: new Set<string>() },
      };
      const events = [{ n: 1, at: now().toISOString(), event: output("x") }];
      const queries: Query[] = [];
      const op = { op: "append_events", run_id, attempt: 1, runner, events } as const;
      await store.engine.write(() => captureQueries(appendEvents(tx, op), queries));
      return queries.length;
    };
    const plain = await countStatements(false);
    expect(plain).toBe(3);
    expect(await countStatements(true)).toBe(plain);
  });
});
