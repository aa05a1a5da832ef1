import { BugError } from "../../model/errors.ts";
import { type Work, write } from "../query.ts";
import { readRestoredAt } from "../revoke-restored-tokens.ts";
import { readStoreId } from "../store-parts.ts";
import { compareTable } from "./compare.ts";
import { checkContents, copyContents, type ContentCounts } from "./contents.ts";
import { toCopyError, createDifferenceError } from "./errors.ts";
import type { WritableRecord, ReadableRecord } from "./record-copy.ts";
import { type Table, tables } from "./tables.ts";

export interface CopyResult extends ContentCounts {
  /** Number of rows by table. */
  rows: Record<string, number>;
}

export interface CopyProgress {
  step: "copying" | "comparing";
  /** The name of a table, or `contents`. */
  item: string;
  done: number;
}

/**
 * Copies a record into an empty one of either engine and compares both afterwards: every column of every row, and the hash
 * of every file's contents. Throws if anything differs. Memory use does not depend on the size of the record. The copy keeps the
 * record's id, because it is the same record.
 */
export async function copyRecord(
  from: ReadableRecord,
  to: WritableRecord,
  onProgress: (progress: CopyProgress) => void = () => undefined,
): Promise<CopyResult> {
  const store_id = await from.runWork(readStoreId());
  const restored_at = await from.runWork(readRestoredAt());
  const rows: Record<string, number> = {};
  for (const table of tables)
    rows[table.name] = await copyTable(table, from, to, (done) =>
      onProgress({ step: "copying", item: table.name, done }),
    );
  const contents = await copyContents(from, to, (done) => onProgress({ step: "copying", item: "contents", done }));
  await to.runWork(writeStoreIdentity(store_id, restored_at));
  await to.flush();
  await compare(from, to, rows, contents, onProgress);
  return { rows, ...contents };
}

async function copyTable(
  table: Table,
  from: ReadableRecord,
  to: WritableRecord,
  onProgress: (done: number) => void,
): Promise<number> {
  let rows = 0;
  try {
    for (
      let page = await from.readPage(table, null);
      page.length > 0;
      page = await from.readPage(table, page.at(-1) ?? null)
    ) {
      await to.insert(table, page);
      rows += page.length;
      onProgress(rows);
    }
    // Flush here, so that an error is reported for the table it belongs to.
    await to.flush();
  } catch (error) {
    throw toCopyError(`The table ${table.name}`, error);
  }
  return rows;
}

async function compare(
  from: ReadableRecord,
  to: WritableRecord,
  rows: Record<string, number>,
  contents: ContentCounts,
  onProgress: (progress: CopyProgress) => void,
): Promise<void> {
  let differences = 0;
  let firstDifference: string | null = null;
  for (const table of tables) {
    const comparison = await compareTable(table, from, to, (done) =>
      onProgress({ step: "comparing", item: table.name, done }),
    );
    differences += comparison.differences;
    firstDifference ??= comparison.first;
    if (comparison.differences === 0 && comparison.rows !== rows[table.name])
      throw new BugError(`${table.name} changed during the copy`);
  }
  if ((await to.runWork(readStoreId())) !== (await from.runWork(readStoreId()))) {
    differences += 1;
    firstDifference ??= "store: its store_id differs";
  }
  if (firstDifference !== null) throw createDifferenceError(to.name, differences, firstDifference);
  await checkContents(to, contents, (done) => onProgress({ step: "comparing", item: "contents", done }));
}

function* writeStoreIdentity(store_id: string, restored_at: string | null): Work<void> {
  yield write("update store set store_id = ?, restored_at = ?", store_id, restored_at);
}
