import { expect, it } from "vitest";
import { agentNamed } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, fromEndToEnd, watched } from "../../../test/fixtures/record/each-engine.ts";
import { pickRuns } from "../ops/pick-runs.ts";
import { findRunner } from "../ops/runner-row.ts";
import type { Query, Work } from "../query.ts";
import { readRuns } from "./runs.ts";
import { readSessions } from "./sessions.ts";

eachEngine("among many runs", (record) => {
  const chat = agentNamed("chat", { type: "autonomous", command: null });
  async function plansOf<T>(work: () => Work<T>, about: RegExp): Promise<string> {
    const asks: Query[] = [];
    await record.store.engine.read(() => watched(work(), asks));
    const plans = asks.filter(({ text }) => about.test(text)).map(({ text, values }) => record.plan(text, ...values));
    return (await Promise.all(plans)).join("\n");
  }

  it("those of one person are found by an index, and so are their sessions", async () => {
    const { d, store } = record;
    for (const who of ["ann", "bob", "ann"])
      await d.submit({ created_by: who, session_id: `${who} ${Math.random()}` }, chat);
    const page = { limit: 2 };
    for (const plan of [
      await plansOf(() => readRuns({ created_by: "ann" }, page), /from runs/),
      await plansOf(() => readSessions({ created_by: "ann" }, page), /from sessions/),
      await plansOf(() => readSessions({ created_by: "ann" }, { ...page, before: "b" }), /from sessions/),
    ]) {
      expect(plan).toMatch(/(runs|sessions)_by_creator[^\n]*(\n +Index Cond:)? *\(+created_by *=/);
    }
    expect((await store.read.runs({ created_by: "ann" }, { limit: 5 })).map((run) => run.created_by)).toEqual([
      "ann",
      "ann",
    ]);
  });

  it("sessions are filtered and paged by any combination of conditions", async () => {
    const { d, store } = record;
    const other = agentNamed("other", { type: "autonomous", command: null });
    for (const [session_id, created_by, agent] of [
      ["a", "ann", chat],
      ["b", "bob", chat],
      ["c", "ann", other],
      ["d", "ann", chat],
    ] as const)
      await d.submit({ session_id, created_by }, agent);
    const found = async (...asked: Parameters<typeof store.read.sessions>) =>
      (await store.read.sessions(...asked)).map(({ session_id }) => session_id).join("");
    expect(await found({}, { limit: 10 })).toBe("dcba");
    expect(await found({}, { limit: 2, before: "d" })).toBe("cb");
    expect(await found({ created_by: "ann" }, { limit: 10 })).toBe("dca");
    expect(await found({ agent_name: "chat" }, { limit: 10, before: "d" })).toBe("ba");
    expect(await found({ agent_name: "chat", created_by: "ann" }, { limit: 10, before: "d" })).toBe("a");
  });

  it("pending runs of one agent are found by an index, past all others", async () => {
    const { d } = record;
    for (const name of ["other", "mine", "other", "mine"]) await d.submit({}, agentNamed(name));
    await d.register("r", { only_agent: "mine" });
    const plan = await plansOf(function* () {
      return yield* pickRuns((yield* findRunner("r"))!, 5);
    }, /agent_name = \?/);
    expect(plan).toContain("runs_to_claim_of");
    expect(plan).toMatch(/agent_name\s*=/);
    expect(plan).not.toMatch(fromEndToEnd);
  });
});
