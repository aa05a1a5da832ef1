import type { SqliteStore } from "../open.ts";
import type { Connection } from "../sqlite/connection.ts";
import { patiently } from "../sqlite/patience.ts";
import { underWriteLock } from "../write-lock.ts";
import { carriedMismatch } from "./head-mismatch.ts";
import { hmacWith, type Mac } from "./hmac.ts";
import { missingKey, readKey } from "./key.ts";
import { sealAnchor } from "./seal.ts";
import { openTrail } from "./trail.ts";

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
export async function pruneAudit(store: SqliteStore, before: Date): Promise<{ rows: number }> {
  const { connection, lockWaitMs, directory } = store;
  const key = readKey(directory);
  if (key === null) throw missingKey(directory);
  const mac = hmacWith(key);
  // Found before the lock is taken, as it reads every batch; what it finds stays true, as rows are only appended.
  const boundary = rowToBatch(
    await patiently(() => connection.sql(selectBoundary).get(before.toISOString()), connection.file, lockWaitMs),
  );
  if (boundary === null) return { rows: 0 };
  const rows = await announce(store, mac, boundary, before);
  for (;;) {
    const done = await underWriteLock(connection, lockWaitMs, () => {
      const chunk = rowToBatch(connection.sql(selectChunk).get(boundary.batch_no, rowsAtOnce));
      return chunk === null || cut(connection, mac, chunk, before, store.now(), boundary.batch_no);
    });
    if (done) return { rows };
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** A head_mismatch that goes is written again, so that no retention ever makes a damaged record look whole. */
async function announce(store: SqliteStore, mac: Mac, { batch_no, last_no }: Batch, before: Date): Promise<number> {
  const { connection, lockWaitMs, directory } = store;
  const carried = await patiently(() => carriedMismatch(connection, last_no), connection.file, lockWaitMs);
  const at = store.now().toISOString();
  const trail = openTrail(directory, connection, mac);
  try {
    const { head, rows } = await underWriteLock(connection, lockWaitMs, () => {
      const pruned = last_no - Number(connection.sql(selectPruned).get()?.["last_no"]);
      const body = JSON.stringify({ pruned_before: before.toISOString(), batch_no, last_no, rows: pruned });
      const entry = { kind: "prune" as const, execution_id: null, run_id: null, attempt: null, at, body };
      return { head: trail.append(carried === null ? [entry] : [entry, carried], at), rows: pruned };
    });
    trail.committed(head);
    return rows;
  } finally {
    trail.close();
  }
}

/** True once nothing is left to cut. Rows and anchor change together, so that every moment verifies. */
function cut(connection: Connection, mac: Mac, chunk: Batch, before: Date, now: Date, until: number): boolean {
  const anchor = { ...chunk, pruned_before: before.toISOString(), at: now.toISOString() };
  connection.sql(deleteRows).run(chunk.last_no);
  connection.sql(deleteBatches).run(chunk.batch_no);
  connection.sql(deleteAnchors).run();
  connection
    .sql(insertAnchor)
    .run(anchor.batch_no, anchor.last_no, anchor.pruned_before, anchor.at, anchor.mac, sealAnchor(mac, anchor));
  return chunk.batch_no >= until;
}

function rowToBatch(row: object | undefined): Batch | null {
  // The statements above select exactly these columns, not null in the schema.
  return row === undefined ? null : (row as Batch);
}
