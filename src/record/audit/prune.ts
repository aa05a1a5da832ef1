import { first, write, type Row, type Work } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import type { AuditEntry } from "./chain.ts";
import type { ChainHead } from "./head.ts";
import { carriedMismatch } from "./head-mismatch.ts";
import type { Mac } from "./hmac.ts";
import { sealAnchor } from "./seal.ts";
import { openTrail, type Trail } from "./trail.ts";

interface Batch {
  batch_no: number;
  last_no: number;
  mac: Uint8Array;
}

/** Rows deleted in one transaction: others wait for a few milliseconds only. */
const rowsAtOnce = 1000;

const selectBoundary = `
  select batch_no, first_no + count - 1 as last_no, mac from audit_batches
  where batch_no < coalesce((select min(batch_no) from audit_batches where at >= ?), 9007199254740991)
    and first_no + count - 1 < coalesce((select min(start_no) from open_executions), 9007199254740991)
  order by batch_no desc limit 1`;
const selectChunk = `
  select batch_no, first_no + count - 1 as last_no, mac from audit_batches
  where batch_no <= ? and (first_no <= (select min(first_no) from audit_batches) + ?)
  order by batch_no desc limit 1`;
const selectPruned = `select coalesce(max(last_no), 0) as last_no from audit_anchors`;
const deleteRows = `delete from audit_rows where no <= ?`;
const deleteBatches = `delete from audit_batches where batch_no <= ?`;
const deleteAnchors = `delete from audit_anchors`;
const insertAnchor = `
  insert into audit_anchors (batch_no, last_no, pruned_before, at, mac, seal) values (?, ?, ?, ?, ?, ?)`;

/**
 * Takes away whole batches from before a time and leaves a sealed anchor in their place, so that the
 * rest still verifies. The chain tells of it first. An execution that has no end yet stays, and so
 * does everything after it.
 */
export async function pruneAudit(store: RecordStore, before: Date): Promise<{ rows: number }> {
  const { engine, seal } = store;
  // Found before the lock is taken, as it reads every batch; what it finds stays true, as rows are only appended.
  const boundary = await engine.read(() => boundaryOf(before));
  if (boundary === null) return { rows: 0 };
  const rows = await announce(store, boundary, before);
  for (;;) {
    if (await engine.write(() => cut(seal.mac, boundary.batch_no, before, store.now()))) return { rows };
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

function* boundaryOf(before: Date): Work<Batch | null> {
  return rowToBatch((yield first(selectBoundary, before.toISOString()))[0]);
}

/** A head_mismatch that goes is written again, so that no retention ever makes a damaged record look whole. */
async function announce({ engine, seal, now }: RecordStore, boundary: Batch, before: Date): Promise<number> {
  const carried = await engine.read(() => carriedMismatch(boundary.last_no));
  const at = now().toISOString();
  const trail = openTrail(seal.openHead(), seal.mac);
  try {
    const { head, rows } = await engine.write(() => tell(trail, boundary, carried, before, at));
    trail.committed(head);
    return rows;
  } finally {
    trail.close();
  }
}

function* tell(
  trail: Trail,
  { batch_no, last_no }: Batch,
  carried: AuditEntry | null,
  before: Date,
  at: string,
): Work<{ head: ChainHead; rows: number }> {
  const [pruned] = yield first(selectPruned);
  const rows = last_no - Number(pruned?.["last_no"]);
  const body = JSON.stringify({ pruned_before: before.toISOString(), batch_no, last_no, rows });
  const entry = { kind: "prune" as const, execution_id: null, run_id: null, attempt: null, at, body };
  const head = yield* trail.append(carried === null ? [entry] : [entry, carried], at);
  return { head, rows };
}

/** True once nothing is left to cut. Rows and anchor change together, so that every moment verifies. */
function* cut(mac: Mac, until: number, before: Date, now: Date): Work<boolean> {
  const chunk = rowToBatch((yield first(selectChunk, until, rowsAtOnce))[0]);
  if (chunk === null) return true;
  const { batch_no, last_no } = chunk;
  const anchor = { ...chunk, pruned_before: before.toISOString(), at: now.toISOString() };
  yield write(deleteRows, last_no);
  yield write(deleteBatches, batch_no);
  yield write(deleteAnchors);
  yield write(insertAnchor, batch_no, last_no, anchor.pruned_before, anchor.at, anchor.mac, sealAnchor(mac, anchor));
  return batch_no >= until;
}

function rowToBatch(row: Row | undefined): Batch | null {
  // The statements above select exactly these columns, not null in the schema.
  return row === undefined ? null : (row as unknown as Batch);
}
