import { expect, it } from "vitest";
import { createAgent } from "../../test/fixtures/dispatch/drive.ts";
import { eachEngine } from "../../test/fixtures/record/each-engine.ts";
import { executionStarted, sampleId } from "../../test/fixtures/record/sample.ts";
import { fromCursor } from "./cursor.ts";
import { listExecutions } from "./pages.ts";

eachEngine("a page of executions", (record) => {
  it("ends at half a megabyte, and the pages together contain every execution", async () => {
    const { driver, store } = record;
    const run_id = await driver.submit({}, createAgent("echo"));
    const runner = await driver.register("r");
    await driver.claim(runner);
    const ids = Array.from({ length: 5 }, () => sampleId());
    for (const [n, id] of ids.entries()) {
      const event = executionStarted(id);
      if (event.type !== "execution_started") throw new Error(`unexpected event ${event.type}`);
      const long = { ...event, execution: { ...event.execution, command: "x".repeat(200_000) } };
      expect(await driver.append(runner, run_id, 1, n + 1, long)).toMatchObject({ ok: true });
    }
    const pages: string[][] = [];
    for (let before: string | null | undefined; before !== null;) {
      const page = { limit: 50, ...(before === undefined ? {} : { before }) };
      const result = await listExecutions(store.read, { run_id }, page, null, async () => null);
      pages.push(result.items.map(({ start }) => start.execution_id));
      before = result.next_cursor === null ? null : fromCursor("executions", result.next_cursor);
    }
    expect(pages.flat()).toEqual(ids.toReversed());
    expect(Math.max(...pages.map(({ length }) => length))).toBe(2);
  });
});
