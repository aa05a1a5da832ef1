import { all, type Row, type Work } from "../query.ts";
import { describeMismatch } from "./head-mismatch.ts";
import type { ComputeMac } from "../../model/hmac.ts";
import { genesis, sealAnchor, sealBatch, sealRow, type AuditAnchor, type AuditBatch, type AuditRow } from "./seal.ts";

/** The first damage found in the chain, and where. */
export interface ChainDamage {
  batch_no: number | null;
  row_no?: number;
  what: string;
  /** True if the chain itself is intact, and this row records damage that a writer found earlier. */
  wasReported?: true;
}

/** The chain is intact up to this position. */
export interface VerifiedPosition {
  batch_no: number;
  last_no: number;
  mac: Uint8Array;
  pruned_before: string | null;
  /** Damage that a writer found earlier and recorded in this batch. */
  recordedDamage: ChainDamage | null;
}

/**
 * One SELECT per table. Each takes a first key and a row limit, and returns rows in key order. Text columns are selected as
 * bytes, because the driver would repair damaged text. The column `typed` is 1 if every value has its declared type.
 */
export interface WalkStatements {
  anchors: string;
  batches: string;
  rows: string;
  /** Counts the entries of the index on execution_id. null if nobody can edit an index in this engine. */
  indexEntries: string | null;
}

/**
 * Calls `onVerified` with the anchor that pruning left, then with each batch after verifying it. Returns the first damage
 * that it finds or that `onVerified` returns. Memory use does not depend on the length of the chain.
 */
export function* walkChain(
  statements: WalkStatements,
  computeMac: ComputeMac,
  onVerified: (position: VerifiedPosition) => ChainDamage | null,
): Work<ChainDamage | null> {
  let position: VerifiedPosition = { batch_no: 0, last_no: 0, mac: genesis, pruned_before: null, recordedDamage: null };
  const anchors = createPagedReader(statements.anchors, "batch_no");
  for (let stored = yield* anchors.next(); stored !== null; stored = yield* anchors.next()) {
    const anchor = parseAnchor(stored);
    if (anchor === null) return { batch_no: Number(stored["batch_no"]), what: "the anchor of pruned rows was changed" };
    const { seal, ...sealed } = anchor;
    if (!isEqual(sealAnchor(computeMac, sealed), seal))
      return { batch_no: anchor.batch_no, what: "the anchor of pruned rows was changed" };
    position = { ...sealed, recordedDamage: null };
  }
  return onVerified(position) ?? (yield* walkBatches(statements, computeMac, position, onVerified));
}

function* walkBatches(
  statements: WalkStatements,
  computeMac: ComputeMac,
  start: VerifiedPosition,
  onVerified: (position: VerifiedPosition) => ChainDamage | null,
): Work<ChainDamage | null> {
  const batches = createPagedReader(statements.batches, "batch_no");
  const rows = createPagedReader(statements.rows, "no");
  let executionRows = 0;
  let position = start;
  for (let stored = yield* batches.next(); stored !== null; stored = yield* batches.next()) {
    const batch = parseBatch(stored);
    const batchDamage = checkBatch(batch, Number(stored["batch_no"]), position);
    if (batchDamage !== null || batch === null) return batchDamage;
    const macs: Uint8Array[] = [];
    let mismatch: Row | null = null;
    for (let no = batch.first_no; no < batch.first_no + batch.count; no += 1) {
      const row = yield* rows.next();
      const damage = checkRow(computeMac, row, no, batch.batch_no);
      if (damage !== null) return damage;
      macs.push(toBytes(row?.["mac"]) ?? genesis);
      if (row?.["execution_id"] !== null) executionRows += 1;
      if (row !== null && decodeText(row["kind"]) === "head_mismatch") mismatch ??= row;
    }
    if (!isEqual(sealBatch(computeMac, position.mac, batch, macs), batch.mac)) {
      return { batch_no: batch.batch_no, what: "the batch was changed, or sealed with a different key" };
    }
    position = {
      batch_no: batch.batch_no,
      last_no: batch.first_no + batch.count - 1,
      mac: batch.mac,
      pruned_before: null,
      recordedDamage: mismatch === null ? null : toRecordedDamage(mismatch),
    };
    const damage = onVerified(position);
    if (damage !== null) return damage;
  }
  const extra = yield* rows.next();
  if (extra === null) return yield* checkIndex(statements, executionRows, position.batch_no);
  return { batch_no: Number(extra["batch_no"]), row_no: Number(extra["no"]), what: "the row belongs to no batch" };
}

/** Each row has one entry in the index. An additional entry would lead a reader to the wrong row. */
function* checkIndex({ indexEntries }: WalkStatements, expected: number, batch_no: number): Work<ChainDamage | null> {
  if (indexEntries === null) return null;
  const [row] = yield all(indexEntries);
  const entries = Number(row?.["entries"]);
  return entries === expected
    ? null
    : { batch_no, what: `the index of executions has ${entries} entries for ${expected} rows` };
}

const pageSize = 1000;
/** The smallest 64-bit integer, so that rows inserted before row 1 are found too. */
const minInt64 = -(2n ** 63n);

/** Reads a table page by page. `next` returns one row, or null after the last. */
function createPagedReader(statement: string, keyColumn: "no" | "batch_no"): { next(): Work<Row | null> } {
  let page: Row[] = [];
  let index = 0;
  let nextKey: number | bigint | null = minInt64;
  return {
    *next() {
      if (index === page.length && nextKey !== null) {
        page = yield all(statement, nextKey, pageSize);
        index = 0;
        nextKey = page.length < pageSize ? null : Number(page.at(-1)?.[keyColumn]) + 1;
      }
      const row = page[index];
      if (row === undefined) return null;
      index += 1;
      return row;
    },
  };
}

function toRecordedDamage(row: Row): ChainDamage {
  const row_no = Number(row["no"]);
  return {
    batch_no: Number(row["batch_no"]),
    row_no,
    what: describeMismatch(row_no, decodeText(row["body"]) ?? ""),
    wasReported: true,
  };
}

function checkBatch(batch: StoredBatch | null, batch_no: number, previous: VerifiedPosition): ChainDamage | null {
  const expected = previous.batch_no + 1;
  if (batch_no > expected) return { batch_no: expected, row_no: previous.last_no + 1, what: "the batch is missing" };
  if (batch_no < expected) return { batch_no, what: "the batch was inserted" };
  if (batch === null || batch.first_no !== previous.last_no + 1 || batch.count < 1)
    return { batch_no, what: "the batch was changed" };
  return null;
}

function checkRow(computeMac: ComputeMac, stored: Row | null, no: number, batch_no: number): ChainDamage | null {
  const storedNo = stored === null ? Number.POSITIVE_INFINITY : Number(stored["no"]);
  if (stored === null || storedNo > no) return { batch_no, row_no: no, what: "the row is missing" };
  if (storedNo < no) return { batch_no, row_no: storedNo, what: "the row was inserted" };
  const row = parseRow(stored);
  const storedMac = toBytes(stored["mac"]);
  if (
    row === null ||
    storedMac === null ||
    row.batch_no !== batch_no ||
    !isEqual(sealRow(computeMac, row), storedMac)
  ) {
    return { batch_no, row_no: no, what: "the row was changed, or sealed with a different key" };
  }
  if (stored["indexed"] !== 1) return { batch_no, row_no: no, what: "the row is missing from an index" };
  return null;
}

interface StoredBatch extends AuditBatch {
  mac: Uint8Array;
}

/** Returns null if a column has the wrong type. */
function parseBatch(row: Row): StoredBatch | null {
  const at = decodeText(row["at"]);
  const mac = toBytes(row["mac"]);
  if (row["typed"] !== 1 || at === null || mac === null) return null;
  return { batch_no: Number(row["batch_no"]), first_no: Number(row["first_no"]), count: Number(row["count"]), at, mac };
}

function parseRow(row: Row): AuditRow | null {
  const kind = decodeText(row["kind"]);
  const at = decodeText(row["at"]);
  const body = decodeText(row["body"]);
  const execution_id = row["execution_id"] === null ? null : decodeText(row["execution_id"]);
  const run_id = row["run_id"] === null ? null : decodeText(row["run_id"]);
  if (row["typed"] !== 1 || kind === null || at === null || body === null) return null;
  return {
    no: Number(row["no"]),
    batch_no: Number(row["batch_no"]),
    // The mac is checked next; no other value would match it.
    kind: kind as AuditRow["kind"],
    execution_id,
    run_id,
    attempt: row["attempt"] === null ? null : Number(row["attempt"]),
    at,
    body,
  };
}

function parseAnchor(row: Row): (AuditAnchor & { seal: Uint8Array }) | null {
  const pruned_before = decodeText(row["pruned_before"]);
  const at = decodeText(row["at"]);
  const mac = toBytes(row["mac"]);
  const seal = toBytes(row["seal"]);
  if (row["typed"] !== 1 || pruned_before === null || at === null || mac === null || seal === null) return null;
  return { batch_no: Number(row["batch_no"]), last_no: Number(row["last_no"]), pruned_before, at, mac, seal };
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeText(value: Row[string] | undefined): string | null {
  const raw = toBytes(value);
  if (raw === null) return null;
  try {
    return strictUtf8.decode(raw);
  } catch {
    // The value is not valid UTF-8, so Drover did not write it. The caller reports the row.
    return null;
  }
}

function toBytes(value: Row[string] | undefined): Uint8Array | null {
  return value instanceof Uint8Array ? value : null;
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
