import { expect, it } from "vitest";
import { output } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine } from "../../../test/fixtures/record/each-engine.ts";
import type { StoredEvent } from "../../model/event.ts";

const long = 200_000;

eachEngine("pages of events", (record) => {
  it("hold what fits into half a megabyte, at least one event, and continue from there", async () => {
    const { driver, store } = record;
    const run_id = await driver.submit();
    const runner = await driver.register("r");
    await driver.claim(runner);
    const sizes = [1, long, long, long, 900_000, 1, 1, long, long, 1];
    await driver.append(runner, run_id, 1, 1, ...sizes.map((size) => output("x".repeat(size))));
    await driver.finish(runner, run_id, 1, {
      result: {
        type: "result",
        status: "completed",
        reason: null,
        error: null,
        exit_code: 0,
        result_text: null,
        result_data: { text: "y".repeat(3_000_000) },
      },
    });
    const last = await store.read.last_position(run_id);
    const runPages = await readPages((after) => store.read.events(run_id, after, 1000), "seq");
    expect(runPages.flat().map(({ seq }) => seq)).toEqual(Array.from({ length: last }, (_, index) => index + 1));
    const feedPages = await readPages((after) => store.read.feed(after, 1000), "cursor");
    expect(feedPages.flat()).toEqual(runPages.flat());
    for (const page of [...runPages, ...feedPages])
      if (page.length > 1) expect(JSON.stringify(page.map(({ event }) => event)).length).toBeLessThan(600_000);
    expect(runPages.at(-1)).toHaveLength(1);
    expect((await store.read.run(run_id))?.result_data).toEqual({ text: "y".repeat(3_000_000) });
  });
});

async function readPages(
  read: (after: number) => Promise<StoredEvent[]>,
  position: "seq" | "cursor",
): Promise<StoredEvent[][]> {
  const all: StoredEvent[][] = [];
  for (let page = await read(0); page.length > 0; page = await read(page.at(-1)![position])) all.push(page);
  return all;
}
