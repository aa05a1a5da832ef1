import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { ChainHead } from "./head.ts";
import type { ComputeMac } from "../../model/hmac.ts";
import { genesis, sealBatch, sealRow, type AuditKind, type AuditRow } from "./seal.ts";

/** An audit row before it has a position in the chain. */
export interface AuditEntry {
  kind: AuditKind;
  execution_id: string | null;
  run_id: string | null;
  attempt: number | null;
  at: string;
  body: string;
}

export interface ChainEnd {
  batch_no: number;
  last_no: number;
  mac: Uint8Array;
}

const lastBatch = `
  select batch_no, first_no + count - 1 as last_no, mac from audit_batches order by batch_no desc limit 1`;
const lastAnchor = `
  select batch_no, last_no, mac from audit_anchors order by batch_no desc limit 1`;
const insertRow = `
  insert into audit_rows (no, batch_no, kind, execution_id, run_id, attempt, at, body, mac)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const insertBatch = `
  insert into audit_batches (batch_no, first_no, count, at, mac) values (?, ?, ?, ?, ?)`;
const openExecution = `
  insert into open_executions (start_no, execution_id) values (?, ?) on conflict do nothing`;
const closeExecution = `
  delete from open_executions where execution_id = ?`;

/** Appends one batch after `end`, inside the current transaction, which must hold the write lock. */
export function* appendToChain(
  computeMac: ComputeMac,
  end: ChainEnd,
  entries: readonly AuditEntry[],
  at: string,
): Work<ChainHead> {
  const batch = { batch_no: end.batch_no + 1, first_no: end.last_no + 1, count: entries.length, at };
  const macs: Uint8Array[] = [];
  for (const [index, entry] of entries.entries()) {
    const row = toRow(entry, batch.batch_no, batch.first_no + index);
    const { no, batch_no, kind, execution_id, run_id, attempt, body } = row;
    const rowMac = sealRow(computeMac, row);
    yield write(insertRow, no, batch_no, kind, execution_id, run_id, attempt, row.at, body, rowMac);
    if (kind === "start") yield write(openExecution, no, execution_id);
    if (kind === "end") yield write(closeExecution, execution_id);
    macs.push(rowMac);
  }
  const batchMac = sealBatch(computeMac, end.mac, batch, macs);
  yield write(insertBatch, batch.batch_no, batch.first_no, batch.count, batch.at, batchMac);
  return { count: batch.first_no + batch.count - 1, mac: Buffer.from(batchMac).toString("hex") };
}

/** Where the next batch continues: after the last batch, or after the anchor that pruning left. */
export function* readChainEnd(): Work<ChainEnd> {
  const row = (yield first(lastBatch))[0] ?? (yield first(lastAnchor))[0];
  if (row === undefined) return { batch_no: 0, last_no: 0, mac: genesis };
  // Both statements select exactly these columns, which are not null.
  return row as unknown as ChainEnd;
}

/** Returns the row as stored: the seal covers the encoded text of the columns. */
function toRow(entry: AuditEntry, batch_no: number, no: number): AuditRow {
  return {
    no,
    batch_no,
    kind: entry.kind,
    execution_id: toColumn(entry.execution_id),
    run_id: toColumn(entry.run_id),
    attempt: entry.attempt,
    at: toColumn(entry.at),
    body: entry.body,
  };
}
