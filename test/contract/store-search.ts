import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/model/event.ts";
import type { Run } from "../../src/model/run.ts";
import type { FinishRun } from "../../src/model/store.ts";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { buildFinish, numbered, sampleRun } from "../fixtures/record/sample.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const toolUse = (input: unknown, name = "shell"): RunEvent => ({ type: "tool_use", tool_use_id: "t", name, input });

/** What every store must do about searching runs. Both engines find the same. */
export function storeSearchContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the search contract`, () => {
    const { store, driver } = eachWithStore(open);
    const storeRun = async (
      run: Partial<Run>,
      result: Partial<FinishRun["result"]> | null = {},
      ...events: RunEvent[]
    ): Promise<string> => {
      const newRun = sampleRun(run);
      await store.apply([{ op: "create_run", run: newRun, events: numbered(newRun.run_id, 1, ...events) }]);
      if (result !== null) await store.apply([buildFinish(newRun.run_id, [], result)]);
      return newRun.run_id;
    };
    const find = async (text: string, filter = {}) => (await store.read.search(text, filter, { limit: 50 })).items;
    const ids = async (text: string, filter = {}) => (await find(text, filter)).map(({ run_id }) => run_id);
    const matches = async (text: string) => (await find(text)).map(({ match }) => match);

    it("finds prompts, parameters, results, errors and tool input, and says where", async () => {
      await storeRun({ prompt: "deploy the aardvark" });
      await storeRun({ parameters: { city: "Bergen", list: ["line\nfjord"] } });
      await storeRun({}, { result_text: "all cormorants counted" });
      await storeRun({}, { result_data: { answer: "dromedary" } });
      await storeRun({}, { status: "failed", reason: "internal", error: "the elephant fell" });
      await storeRun({}, {}, { type: "assistant", text: "hm" }, toolUse({ command: "rm -rf flamingo" }));
      expect(await matches("aardvark")).toEqual([{ where: "prompt", seq: null, excerpt: "deploy the aardvark" }]);
      expect(await matches("bergen")).toMatchObject([{ where: "prompt", seq: null }]);
      expect(await matches("fjord")).toMatchObject([{ where: "prompt" }]);
      expect(await matches("cormorants")).toEqual([{ where: "result", seq: null, excerpt: "all cormorants counted" }]);
      expect(await matches("dromedary")).toMatchObject([{ where: "result" }]);
      expect(await matches("elephant")).toEqual([{ where: "error", seq: null, excerpt: "the elephant fell" }]);
      expect(await matches("flamingo")).toEqual([
        { where: "tool_input", seq: 2, excerpt: 'shell {"command":"rm -rf flamingo"}' },
      ]);
      expect(await matches("hm")).toEqual([]);
    });

    it("finds a run while it is pending, and its result once it has ended", async () => {
      const run_id = await driver.submit({ prompt: "count the geese" }, createAgent("counter"));
      expect(await ids("geese")).toEqual([run_id]);
      const runner = await driver.register("r");
      await driver.claim(runner);
      expect(await ids("seventeen")).toEqual([]);
      await driver.finish(runner, run_id, 1, { result: buildFinish(run_id, [], { result_text: "seventeen" }).result });
      expect(await ids("seventeen")).toEqual([run_id]);
      expect(await ids("geese seventeen")).toEqual([run_id]);
    });

    it("requires every word, each as a prefix, and phrases exactly", async () => {
      const first = await storeRun({ prompt: "migrate the old database to staging" });
      const second = await storeRun({ prompt: "database staging old_style" });
      expect(await ids("DATA stag")).toEqual([second, first]);
      expect(await ids("database missing")).toEqual([]);
      expect(await ids("base")).toEqual([]);
      expect(await ids('"old database"')).toEqual([first]);
      expect(await ids('"old data"')).toEqual([]);
      expect(await ids("old_st")).toEqual([second]);
      expect(await ids("old/data")).toEqual([first]);
      expect(await ids("o")).toEqual([]);
    });

    it("ignores case and accents, and finds words of scripts without spaces", async () => {
      const cafe = await storeRun({ prompt: "Café ÅRSRAPPORT naïve" });
      const han = await storeRun({ prompt: "请检查数据库连接" });
      const emoji = await storeRun({ prompt: "ship 🚢 it\0 now" });
      expect(await ids("cafe arsrap")).toEqual([cafe]);
      expect(await ids("CAFÉ")).toEqual([cafe]);
      expect(await ids("数据库")).toEqual([han]);
      expect(await ids("库数")).toEqual([]);
      expect(await ids("ship now")).toEqual([emoji]);
    });

    it("lists newest first, in pages, with the other filters", async () => {
      const runs: string[] = [];
      for (const [created_by, agent_name] of [
        ["ann", "a"],
        ["bob", "a"],
        ["ann", "b"],
        ["ann", "a"],
      ] as const)
        runs.push(await storeRun({ prompt: "common words", created_by, agent_name }));
      expect(await ids("common")).toEqual(runs.toReversed());
      expect(await ids("common", { created_by: "ann", agent_name: "a" })).toEqual([runs[3], runs[0]]);
      expect(await ids("common", { status: ["failed"] })).toEqual([]);
      const page = await store.read.search("common", { created_by: "ann" }, { limit: 2 });
      expect(page.items.map(({ run_id }) => run_id)).toEqual([runs[3], runs[2]]);
      const rest = await store.read.search("common", { created_by: "ann" }, { limit: 2, before: page.next! });
      expect(rest).toMatchObject({ items: [{ run_id: runs[0] }], next: null, indexing: false });
    });

    it("lists a run once, however many of its tool inputs match", async () => {
      const run_id = await storeRun({}, {}, toolUse("penguin one"), toolUse("penguin two"));
      expect(await find("penguin")).toMatchObject([{ run_id, match: { where: "tool_input", seq: 1 } }]);
    });

    it("returns a short excerpt around the match, as plain text", async () => {
      await storeRun({ prompt: `${"before ".repeat(300)}\u001b[31mneedle\u001b[0m\n\t${"after ".repeat(300)}` });
      const [match] = await matches("needle");
      expect(match?.excerpt).toMatch(/^….*before needle after .*…$/);
      expect(match?.excerpt.length).toBeLessThanOrEqual(200);
    });

    it("accepts any query", async () => {
      await storeRun({ prompt: "ordinary text" });
      const queries = [
        ['"', '""', "*", "a*", "NEAR(a b)", "a AND", "OR", "NOT x", "words:ordinary", "^ordinary", "-ordinary"],
        ["'", "' | !a", "a:*", "\\", "(((", "a & b <-> c", "\0", "ordinary\0", "\ud800", "%", "{}", "🚢"],
        ["x".repeat(10_000), "x ".repeat(5000), '"'.repeat(5000), "é".repeat(3000), "\ue000"],
      ].flat();
      for (const text of queries) expect(Array.isArray(await find(text)), text.slice(0, 20)).toBe(true);
      expect(await find("^ordinary")).toHaveLength(1);
    });
  });
}
