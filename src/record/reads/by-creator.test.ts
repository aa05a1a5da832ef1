import { expect, it } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, fromEndToEnd, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import { pickRuns } from "../ops/pick-runs.ts";
import { findRunner } from "../ops/runner-row.ts";
import type { Query, Work } from "../query.ts";
import { readRuns } from "./runs.ts";
import { readSessions } from "./sessions.ts";

eachEngine("among many runs", (record) => {
  const chat = createAgent("chat", { type: "autonomous", command: null });
  async function explainQueries<T>(work: () => Work<T>, pattern: RegExp): Promise<string> {
    const queries: Query[] = [];
    await record.store.engine.read(() => captureQueries(work(), queries));
    const plans = queries
      .filter(({ text }) => pattern.test(text))
      .map(({ text, values }) => record.plan(text, ...values));
    return (await Promise.all(plans)).join("\n");
  }

  it("one person's runs are found by an index, and so are their sessions", async () => {
    const { driver, store } = record;
    for (const who of ["ann", "bob", "ann"])
      await driver.submit({ created_by: who, session_id: `${who} ${Math.random()}` }, chat);
    const page = { limit: 2 };
    for (const plan of [
      await explainQueries(() => readRuns({ created_by: "ann" }, page), /from runs/),
      await explainQueries(() => readSessions({ created_by: "ann" }, page), /from sessions/),
      await explainQueries(() => readSessions({ created_by: "ann" }, { ...page, before: "b" }), /from sessions/),
    ]) {
      expect(plan).toMatch(/(runs|sessions)_by_creator[^\n]*(\n +Index Cond:)? *\(+created_by *=/);
    }
    expect((await store.read.runs({ created_by: "ann" }, { limit: 5 })).map((run) => run.created_by)).toEqual([
      "ann",
      "ann",
    ]);
  });

  it.each(["hooks", "webhooks"])("the %s of one owner are counted by an index", async (table) => {
    const plan = await record.plan(`select count(*) as count from ${table} where created_by = ?`, "ann");
    expect(plan).toMatch(/hooks_by_owner[^\n]*(\n +Index Cond:)? *\(+created_by *=/);
  });

  it("sessions are filtered and paged by any combination of conditions", async () => {
    const { driver, store } = record;
    const other = createAgent("other", { type: "autonomous", command: null });
    for (const [session_id, created_by, agent] of [
      ["a", "ann", chat],
      ["b", "bob", chat],
      ["c", "ann", other],
      ["d", "ann", chat],
    ] as const)
      await driver.submit({ session_id, created_by }, agent);
    const findSessions = async (...filter: Parameters<typeof store.read.sessions>) =>
      (await store.read.sessions(...filter)).map(({ session_id }) => session_id).join("");
    expect(await findSessions({}, { limit: 10 })).toBe("dcba");
    expect(await findSessions({}, { limit: 2, before: "d" })).toBe("cb");
    expect(await findSessions({ created_by: "ann" }, { limit: 10 })).toBe("dca");
    expect(await findSessions({ agent_name: "chat" }, { limit: 10, before: "d" })).toBe("ba");
    expect(await findSessions({ agent_name: "chat", created_by: "ann" }, { limit: 10, before: "d" })).toBe("a");
  });

  it("runs and sessions are found by the end of their id, alone and together with other conditions", async () => {
    const { driver, store } = record;
    const ids = ["01a1ef80-0000-7000-8000-aaaabbbbcccc", "01a1ef80-0000-7000-8000-ddddbbbbcccc"] as const;
    for (const [id, created_by] of [
      [ids[0], "ann"],
      [ids[1], "bob"],
    ] as const)
      await driver.submit({ run_id: id, session_id: id, created_by }, chat);
    const find = async (filter: Parameters<typeof store.read.sessions>[0]) => {
      const runs = (await store.read.runs(filter, { limit: 5, limitBytes: true })).map(({ run_id }) => run_id);
      expect((await store.read.sessions(filter, { limit: 5 })).map(({ session_id }) => session_id)).toEqual(runs);
      return runs;
    };
    expect(await find({ id_suffix: "bbbbcccc" })).toEqual(ids.toReversed());
    expect(await find({ id_suffix: "abbbbcccc" })).toEqual([ids[0]]);
    expect(await find({ id_suffix: "bbbbcccc", created_by: "bob" })).toEqual([ids[1]]);
    expect(await find({ id_suffix: "aaaabbbb" })).toEqual([]);
  });

  it("the end of an id is searched in the index of ids alone, and only among the newest", async () => {
    const page = { limit: 3 };
    for (const plan of [
      await explainQueries(() => readRuns({ id_suffix: "bbbbcccc" }, page), /from runs/),
      await explainQueries(() => readSessions({ id_suffix: "bbbbcccc" }, page), /from sessions/),
    ])
      // A range that begins at the oldest id of the window, not a scan of the table.
      expect(plan).toMatch(/(run_id|session_id)\)? *>=? *(\?|COALESCE)|(run_id|session_id)>/i);
  });

  it("pending runs of one agent are found by an index, past all others", async () => {
    const { driver } = record;
    for (const name of ["other", "wanted", "other", "wanted"]) await driver.submit({}, createAgent(name));
    await driver.register("r", { only_agent: "wanted" });
    const plan = await explainQueries(function* () {
      return yield* pickRuns((yield* findRunner("r"))!, 5);
    }, /agent_name = \?/);
    expect(plan).toContain("runs_to_claim_of");
    expect(plan).toMatch(/agent_name\s*=/);
    expect(plan).not.toMatch(fromEndToEnd);
  });
});
