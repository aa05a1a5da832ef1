import { expect, it } from "vitest";
import { output } from "../../../test/fixtures/dispatch/drive.ts";
import { numbered, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { freshDatabase } from "../../../test/postgres/fresh-database.ts";
import type { Row } from "../query.ts";
import { migrateRecord } from "./migrate-record.ts";
import { withSnapshot } from "./postgres-record.ts";
import { maxPageBytes, maxPageRows, type ReadableRecord } from "./record-copy.ts";
import { withLockedRecord } from "./sqlite-record.ts";
import { tables } from "./tables.ts";

const scratch = scratchStores();
const events = tables.find(({ name }) => name === "events")!;

it("reads pages that fit into memory, however long rows are, and every row exactly once", async () => {
  const directory = scratch.newDirectory();
  const database = await freshDatabase();
  try {
    const store = await scratch.open(directory);
    const run = sampleRun();
    const long = Array.from({ length: 30 }, (_, n) => output("x".repeat(n % 3 === 0 ? 300_000 : 2_000_000)));
    const short = Array.from({ length: 1200 }, () => output("short"));
    await store.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, ...long, ...short) }]);
    await store.close();
    await migrateRecord({ directory, url: database.url, now: new Date() });
    for (const pages of [
      await withLockedRecord(directory, 1000, readPages),
      await withSnapshot(database.url, readPages),
    ]) {
      expect(pages.flat().map(({ cursor }) => cursor)).toEqual(Array.from({ length: 1230 }, (_, index) => index + 1));
      expect(Math.max(...pages.map((page) => page.length))).toBe(maxPageRows);
      // A page contains what fits, plus at most one row.
      for (const page of pages) expect(measurePage(page.slice(0, -1))).toBeLessThan(maxPageBytes);
    }
  } finally {
    await database.drop();
  }
});

async function readPages(record: ReadableRecord): Promise<Row[][]> {
  const pages: Row[][] = [];
  for (
    let page = await record.readPage(events, null);
    page.length > 0;
    page = await record.readPage(events, page.at(-1)!)
  )
    pages.push(page);
  return pages;
}

function measurePage(page: readonly Row[]): number {
  return page.reduce((sum, { body }) => sum + String(body).length, 0);
}
