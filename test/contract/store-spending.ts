import { describe, expect, it } from "vitest";
import { createAgent, type DrivenRunner } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const thinker = { type: "autonomous", command: null } as const;
const chat = createAgent("chat", thinker);
const turn = (input_tokens: number, output_tokens: number, cost_usd: number | null = null) =>
  ({ type: "usage", usage: { input_tokens, output_tokens, cost_usd } }) as const;

/** What every store must do about usage, budgets and usage limits. */
export function storeSpendingContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the spending contract`, () => {
    const { store, driver, now, advance } = eachWithStore(open);
    const rescue = () => store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 100 }]);
    const begin = async (runner: DrivenRunner, agent = chat, session_id = "s", created_by = "ann") => {
      const run_id = await driver.submit({ session_id, created_by }, agent);
      expect(await driver.claim(runner)).toEqual([run_id]);
      return run_id;
    };
    const midnight = (): string => new Date((Math.floor(now().getTime() / 86_400_000) + 1) * 86_400_000).toISOString();
    const renew = (...runner_ids: string[]) => store.apply([{ op: "renew_idle", runner_ids, lease_ms: 10_000 }]);

    describe("usage", () => {
      it("of a run is the sum of its turns over all attempts, and is counted once", async () => {
        const runner = await driver.register("r");
        const run_id = await begin(runner);
        await driver.append(runner, run_id, 1, 1, turn(10, 1), turn(20, 2, 0.5));
        await driver.append(runner, run_id, 1, 1, turn(10, 1), turn(20, 2, 0.5));
        await driver.append(runner, run_id, 1, 3, turn(-5, -5, -1));
        await driver.finish(runner, run_id, 1, { last_n: 3, give_back: "at_no_cost" });
        await driver.claim(runner);
        await driver.append(runner, run_id, 2, 1, turn(5, 5, 0.25));
        expect((await store.read.run(run_id))?.usage).toEqual({ input_tokens: 35, output_tokens: 8, cost_usd: 0.75 });
        expect(await store.read.usage({ by: "agent" }, 10)).toEqual([
          {
            agent_name: "chat",
            day: null,
            session_id: null,
            runs: 1,
            turns: 4,
            input_tokens: 35,
            output_tokens: 8,
            cost_usd: 0.75,
          },
        ]);
      });

      it("is added up by agent, by UTC day and by session, and filtered by owner", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const runOfAnn = await begin(runner, chat, "s");
        const runOfBob = await begin(runner, createAgent("other", thinker), "t", "bob");
        await driver.append(runner, runOfAnn, 1, 1, turn(1, 1));
        await driver.append(runner, runOfBob, 1, 1, turn(2, 2, 1));
        const [today, tomorrow] = [now().toISOString().slice(0, 10), midnight().slice(0, 10)];
        advance(86_400_000);
        await driver.append(runner, runOfAnn, 1, 2, turn(4, 4));
        const by = async (filter: Parameters<typeof store.read.usage>[0]) =>
          (await store.read.usage(filter, 10)).map(({ agent_name, day, session_id, runs, input_tokens, cost_usd }) => [
            agent_name ?? day ?? session_id,
            runs,
            input_tokens,
            cost_usd,
          ]);
        expect(await by({ by: "agent" })).toEqual([
          ["chat", 1, 5, null],
          ["other", 1, 2, 1],
        ]);
        expect(await by({ by: "day" })).toEqual([
          [tomorrow, 0, 4, null],
          [today, 2, 3, 1],
        ]);
        expect(await by({ by: "day", until: tomorrow, agent_name: "other" })).toEqual([[today, 1, 2, 1]]);
        expect(await by({ by: "agent", since: tomorrow })).toEqual([["chat", 0, 4, null]]);
        expect(await by({ by: "agent", created_by: "bob" })).toEqual([["other", 1, 2, 1]]);
        expect(await store.read.usage({ by: "session" }, 10)).toMatchObject([
          { session_id: "t", agent_name: "other", input_tokens: 2 },
          { session_id: "s", agent_name: "chat", input_tokens: 5, turns: 2 },
        ]);
      });
    });

    describe("the budget of a day", () => {
      const limitedAgent = createAgent("thrifty", { ...thinker, budget: { per_day: { tokens: 10 } } });

      it("is reported as spent with each save and report, and parks runs until the next UTC day", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const run_id = await begin(runner, limitedAgent);
        expect(await driver.save(runner, run_id, 1, 1, "state")).not.toHaveProperty("budget");
        await driver.append(runner, run_id, 1, 2, turn(6, 3));
        expect(await driver.beat(runner, [[run_id, 1]], null)).not.toHaveProperty("over_budget");
        await driver.append(runner, run_id, 1, 3, turn(1, 0));
        expect(await driver.beat(runner, [[run_id, 1]], null)).toMatchObject({ over_budget: [[run_id, 1]] });
        expect(await driver.save(runner, run_id, 1, 4, "state")).toMatchObject({ ok: true, budget: "spent" });
        await driver.finish(runner, run_id, 1, { last_n: 4, parked: { why: "budget" } });
        expect(await store.read.run(run_id)).toMatchObject({ parked_why: "budget", parked_until: midnight() });

        const next = await driver.submit({ session_id: "t" }, limitedAgent);
        const unlimitedRun = await driver.submit({ session_id: "u" }, chat);
        expect(await driver.claim(runner, 9)).toEqual([unlimitedRun]);
        expect(await store.read.run(next)).toMatchObject({ status: "parked", parked_why: "budget", attempt: 0 });
        expect(await store.read.why(next)).toMatchObject([{ demand: "budget" }]);
        advance(Date.parse(midnight()) - now().getTime());
        await renew("r");
        await rescue();
        const { claims } = await driver.poll(await driver.register("r", { slots: 9 }), 9);
        expect(claims.map((claim) => [claim.run_id, claim.invocation.continues]).sort()).toEqual(
          [
            [run_id, true],
            [next, false],
          ].sort(),
        );
      });

      it("fails a run if its agent is configured so, and lets a resumed run continue", async () => {
        const failingAgent = createAgent("strict", {
          ...thinker,
          budget: { per_day: { cost_usd: 1 }, when_spent: "fail" },
        });
        const runner = await driver.register("r", { slots: 9 });
        for (const [agent, session_id] of [
          [failingAgent, "a"],
          [limitedAgent, "b"],
        ] as const) {
          const run_id = await begin(runner, agent, session_id);
          await driver.append(runner, run_id, 1, 1, turn(100, 100, 1));
          await driver.finish(runner, run_id, 1, { last_n: 1 });
        }
        const failed = await driver.submit({ session_id: "c" }, failingAgent);
        const resumed = await driver.submit({ session_id: "d" }, limitedAgent);
        expect(await driver.claim(runner, 9)).toEqual([]);
        expect(await store.read.run(failed)).toMatchObject({ status: "failed", reason: "budget_exceeded" });
        await store.apply([{ op: "resume_run", run_id: resumed, by: "ann" }]);
        expect(await driver.claim(runner, 1)).toEqual([resumed]);
        expect(await driver.save(runner, resumed, 1, 1, "state")).not.toHaveProperty("budget");
      });
    });

    describe("a usage limit", () => {
      const model = { executor: { type: "model", config: { provider: "acme" } }, slots: 9 };

      it("parks all runs of its provider and place until it ends, and then they continue", async () => {
        const [runner, runnerOfSamePlace, runnerElsewhere] = [
          await driver.register("r", { ...model, place_id: "here" }),
          await driver.register("twin", { ...model, place_id: "here", executor_profile: "twin" }),
          await driver.register("elsewhere", { ...model, place_id: "there", hostname: "there" }),
        ];
        const run_id = await begin(runner);
        const until = new Date(now().getTime() + 60_000).toISOString();
        await driver.finish(runner, run_id, 1, { parked: { why: "usage_limit", until } });
        const runElsewhere = await driver.submit({ session_id: "there", demands: { hostname: "there" } }, chat);
        expect(await driver.claim(runnerElsewhere)).toEqual([runElsewhere]);
        const shared = [];
        for (const session_id of ["a", "b", "c"]) shared.push(await driver.submit({ session_id }, chat));
        const runOfOtherProvider = await driver.submit(
          { session_id: "d" },
          createAgent("unlike", { ...thinker, provider: "other" }),
        );
        const runThatFails = await driver.submit(
          { session_id: "e" },
          createAgent("brave", { ...thinker, on_usage_limit: "fail" }),
        );
        expect(await driver.claim(runnerOfSamePlace, 9)).toEqual([runOfOtherProvider, runThatFails]);
        for (const parkedRun of shared)
          expect(await store.read.run(parkedRun)).toMatchObject({
            status: "parked",
            parked_why: "usage_limit",
            parked_until: until,
          });
        advance(60_000);
        await renew("r", "twin", "elsewhere");
        await rescue();
        expect(await driver.statuses(run_id, ...shared)).toEqual(["pending", "pending", "pending", "pending"]);
        expect(await driver.claim(await driver.register("r", { ...model, place_id: "here" }), 9)).toEqual([
          run_id,
          ...shared,
        ]);
      });
    });
  });
}
