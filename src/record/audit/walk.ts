import { all, type Row, type Work } from "../query.ts";
import { describeMismatch } from "./head-mismatch.ts";
import type { Mac } from "../../model/hmac.ts";
import { genesis, sealAnchor, sealBatch, sealRow, type AuditAnchor, type AuditBatch, type AuditRow } from "./seal.ts";

/** The first place where the chain differs from what was written. */
export interface BadPlace {
  batch_no: number | null;
  row_no?: number;
  what: string;
  /** The rows are intact, but this one records damage that was found before it. */
  told?: true;
}

/** A verified place: everything up to it is intact. */
export interface CheckedPlace {
  batch_no: number;
  last_no: number;
  mac: Uint8Array;
  pruned_before: string | null;
  /** Damage that the batch records. The batch itself is intact. */
  told: BadPlace | null;
}

/**
 * How an engine reads the three tables in order: rows from `?` on, at most `?` of them. Text is read as bytes, because the
 * driver would repair damaged text. `typed` is 1 if every column has its declared type.
 */
export interface WalkStatements {
  anchors: string;
  batches: string;
  rows: string;
  /** Counts the entries of the index by execution. null if an index cannot be edited. */
  indexEntries: string | null;
}

/**
 * Calls `at` with the anchor that pruning left, then with every batch after verifying it. Returns the first bad place that
 * it finds or that `at` returns. Memory use does not depend on the length of the chain.
 */
export function* walkChain(
  statements: WalkStatements,
  mac: Mac,
  at: (place: CheckedPlace) => BadPlace | null,
): Work<BadPlace | null> {
  let place: CheckedPlace = { batch_no: 0, last_no: 0, mac: genesis, pruned_before: null, told: null };
  const anchors = inPages(statements.anchors, "batch_no");
  for (let stored = yield* anchors.next(); stored !== null; stored = yield* anchors.next()) {
    const anchor = anchorFrom(stored);
    if (anchor === null) return { batch_no: Number(stored["batch_no"]), what: "the anchor of pruned rows was changed" };
    const { seal, ...sealed } = anchor;
    if (!equal(sealAnchor(mac, sealed), seal))
      return { batch_no: anchor.batch_no, what: "the anchor of pruned rows was changed" };
    place = { ...sealed, told: null };
  }
  return at(place) ?? (yield* walkBatches(statements, mac, place, at));
}

function* walkBatches(
  statements: WalkStatements,
  mac: Mac,
  from: CheckedPlace,
  at: (place: CheckedPlace) => BadPlace | null,
): Work<BadPlace | null> {
  const batches = inPages(statements.batches, "batch_no");
  const rows = inPages(statements.rows, "no");
  let executionRows = 0;
  let place = from;
  for (let stored = yield* batches.next(); stored !== null; stored = yield* batches.next()) {
    const batch = batchFrom(stored);
    const bad = misplaced(batch, Number(stored["batch_no"]), place);
    if (bad !== null || batch === null) return bad;
    const macs: Uint8Array[] = [];
    let mismatch: Row | null = null;
    for (let no = batch.first_no; no < batch.first_no + batch.count; no += 1) {
      const row = yield* rows.next();
      const fault = rowFault(mac, row, no, batch.batch_no);
      if (fault !== null) return fault;
      macs.push(bytes(row?.["mac"]) ?? genesis);
      if (row?.["execution_id"] !== null) executionRows += 1;
      if (row !== null && text(row["kind"]) === "head_mismatch") mismatch ??= row;
    }
    if (!equal(sealBatch(mac, place.mac, batch, macs), batch.mac)) {
      return { batch_no: batch.batch_no, what: "the batch was changed, or made with another key" };
    }
    place = {
      batch_no: batch.batch_no,
      last_no: batch.first_no + batch.count - 1,
      mac: batch.mac,
      pruned_before: null,
      told: mismatch === null ? null : recordedMismatch(mismatch),
    };
    const missed = at(place);
    if (missed !== null) return missed;
  }
  const extra = yield* rows.next();
  if (extra === null) return yield* indexFault(statements, executionRows, place.batch_no);
  return { batch_no: Number(extra["batch_no"]), row_no: Number(extra["no"]), what: "the row belongs to no batch" };
}

/** Every row has its index entry; one entry more leads a reader to the wrong row. */
function* indexFault({ indexEntries }: WalkStatements, expected: number, batch_no: number): Work<BadPlace | null> {
  if (indexEntries === null) return null;
  const [row] = yield all(indexEntries);
  const entries = Number(row?.["entries"]);
  return entries === expected
    ? null
    : { batch_no, what: `the index of executions has ${entries} entries for ${expected} rows` };
}

const pageSize = 1000;
/** The smallest value of a column, so that rows inserted before the first one are found too. */
const leastNumber = -(2n ** 63n);

/** Iterates row by row; returns null after the last. */
function inPages(statement: string, number: "no" | "batch_no"): { next(): Work<Row | null> } {
  let page: Row[] = [];
  let taken = 0;
  let from: number | bigint | null = leastNumber;
  return {
    *next() {
      if (taken === page.length && from !== null) {
        page = yield all(statement, from, pageSize);
        taken = 0;
        from = page.length < pageSize ? null : Number(page.at(-1)?.[number]) + 1;
      }
      const row = page[taken];
      if (row === undefined) return null;
      taken += 1;
      return row;
    },
  };
}

function recordedMismatch(row: Row): BadPlace {
  const row_no = Number(row["no"]);
  return {
    batch_no: Number(row["batch_no"]),
    row_no,
    what: describeMismatch(row_no, text(row["body"]) ?? ""),
    told: true,
  };
}

function misplaced(batch: StoredBatch | null, batch_no: number, before: CheckedPlace): BadPlace | null {
  const expected = before.batch_no + 1;
  if (batch_no > expected) return { batch_no: expected, row_no: before.last_no + 1, what: "the batch is missing" };
  if (batch_no < expected) return { batch_no, what: "the batch was inserted" };
  if (batch === null || batch.first_no !== before.last_no + 1 || batch.count < 1)
    return { batch_no, what: "the batch was changed" };
  return null;
}

function rowFault(mac: Mac, stored: Row | null, no: number, batch_no: number): BadPlace | null {
  const found = stored === null ? Number.POSITIVE_INFINITY : Number(stored["no"]);
  if (stored === null || found > no) return { batch_no, row_no: no, what: "the row is missing" };
  if (found < no) return { batch_no, row_no: found, what: "the row was inserted" };
  const row = rowFrom(stored);
  const seal = bytes(stored["mac"]);
  if (row === null || seal === null || row.batch_no !== batch_no || !equal(sealRow(mac, row), seal)) {
    return { batch_no, row_no: no, what: "the row was changed, or made with another key" };
  }
  if (stored["indexed"] !== 1) return { batch_no, row_no: no, what: "the row is missing from an index" };
  return null;
}

interface StoredBatch extends AuditBatch {
  mac: Uint8Array;
}

/** Returns null if a column has the wrong type. */
function batchFrom(row: Row): StoredBatch | null {
  const at = text(row["at"]);
  const mac = bytes(row["mac"]);
  if (row["typed"] !== 1 || at === null || mac === null) return null;
  return { batch_no: Number(row["batch_no"]), first_no: Number(row["first_no"]), count: Number(row["count"]), at, mac };
}

function rowFrom(row: Row): AuditRow | null {
  const kind = text(row["kind"]);
  const at = text(row["at"]);
  const body = text(row["body"]);
  const execution_id = row["execution_id"] === null ? null : text(row["execution_id"]);
  const run_id = row["run_id"] === null ? null : text(row["run_id"]);
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

function anchorFrom(row: Row): (AuditAnchor & { seal: Uint8Array }) | null {
  const pruned_before = text(row["pruned_before"]);
  const at = text(row["at"]);
  const mac = bytes(row["mac"]);
  const seal = bytes(row["seal"]);
  if (row["typed"] !== 1 || pruned_before === null || at === null || mac === null || seal === null) return null;
  return { batch_no: Number(row["batch_no"]), last_no: Number(row["last_no"]), pruned_before, at, mac, seal };
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function text(value: Row[string] | undefined): string | null {
  const raw = bytes(value);
  if (raw === null) return null;
  try {
    return strict.decode(raw);
  } catch {
    // Not UTF-8, so Drover did not write it. The caller reports the row.
    return null;
  }
}

function bytes(value: Row[string] | undefined): Uint8Array | null {
  return value instanceof Uint8Array ? value : null;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
