import type { Engine } from "../engine.ts";
import { statusIn } from "../moves/statuses.ts";
import { all, first, write, type Work } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import type { AuditEntry } from "./chain.ts";
import type { ChainHead } from "./head.ts";
import { findMismatchToKeep } from "./head-mismatch.ts";
import type { ComputeMac } from "../../model/hmac.ts";
import { sealAnchor } from "./seal.ts";
import { openTrail, type Trail } from "./trail.ts";

/** A batch and its last row. */
interface BatchEnd {
  batch_no: number;
  last_no: number;
}

interface Batch extends BatchEnd {
  mac: Uint8Array;
}

/** Rows and batches deleted per transaction, so that other writers wait only a few milliseconds. */
const chunkSize = 1000;
const batchesPerRead = 1000;

const selectAnchor = `select batch_no, last_no from audit_anchors order by batch_no desc limit 1`;
const selectBatches = `
  select batch_no, first_no + count - 1 as last_no, at from audit_batches where batch_no > ? order by batch_no limit ?`;
/**
 * The first execution that may still record its end: a runner still has its attempt, or it belongs to an unfinished
 * `drover exec`, which has no agent and is never claimed.
 */
const selectOpen = `
  select start_no from open_executions join audit_rows on audit_rows.no = open_executions.start_no
    join runs on runs.run_id = audit_rows.run_id and runs.attempt = audit_rows.attempt
  where ${statusIn("assigned", "runs.status")} or (runs.agent_rev_id is null and ${statusIn("open", "runs.status")})
  order by start_no limit 1`;
/** The range limits how many batches this statement reads. */
const selectChunk = `
  select batch_no, first_no + count - 1 as last_no, mac from audit_batches
  where batch_no >= ?1 and batch_no <= ?2 and first_no <= ?3
  order by batch_no desc limit 1`;
const selectFirst = `select batch_no, first_no from audit_batches where batch_no > ? order by batch_no limit 1`;
const deleteRows = `delete from audit_rows where no > ? and no <= ?`;
const deleteBatches = `delete from audit_batches where batch_no > ? and batch_no <= ?`;
const deleteOpen = `delete from open_executions where start_no <= ?`;
const deleteAnchors = `delete from audit_anchors`;
const insertAnchor = `
  insert into audit_anchors (batch_no, last_no, pruned_before, at, mac, seal) values (?, ?, ?, ?, ?, ?)`;

/**
 * Removes whole batches that were written before a given time and leaves a sealed anchor in their place, so that the rest
 * still verifies. The chain records the pruning first. An execution that is still running stays, and so does everything
 * after it.
 */
export async function pruneAudit(store: RecordStore, cutoff: Date): Promise<{ rows: number }> {
  const { engine, seal } = store;
  // Determined without the lock. It stays valid, because rows are only appended and ended attempts never restart.
  const boundary = await findBoundary(engine, cutoff.toISOString());
  if (boundary === null) return { rows: 0 };
  const rows = await recordPruning(store, boundary, cutoff);
  for (;;) {
    if (await engine.write(() => removeChunk(seal.computeMac, boundary.batch_no, cutoff, store.now()))) return { rows };
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Reads page by page, because there may be millions of batches. */
async function findBoundary(engine: Engine, time: string): Promise<BatchEnd | null> {
  const { after, firstOpen } = await engine.read(readPruneStart);
  let boundary: BatchEnd | null = null;
  for (let last = after; ;) {
    const batches = await engine.read(() => readBatchesAfter(last));
    const firstKept = batches.findIndex(({ at, last_no }) => at >= time || last_no >= firstOpen);
    boundary = (firstKept < 0 ? batches : batches.slice(0, firstKept)).at(-1) ?? boundary;
    if (firstKept >= 0 || batches.length < batchesPerRead) return boundary;
    last = boundary?.batch_no ?? last;
  }
}

function* readPruneStart(): Work<{ after: number; firstOpen: number }> {
  const { batch_no } = yield* readAnchor();
  const [open] = yield first(selectOpen);
  return { after: batch_no, firstOpen: Number(open?.["start_no"] ?? Number.POSITIVE_INFINITY) };
}

function* readBatchesAfter(batch_no: number): Work<(BatchEnd & { at: string })[]> {
  // The statement selects exactly these columns, which are not null.
  return (yield all(selectBatches, batch_no, batchesPerRead)) as unknown as (BatchEnd & { at: string })[];
}

/** The last batch that retention has removed. */
function* readAnchor(): Work<BatchEnd> {
  const [row] = yield first(selectAnchor);
  return { batch_no: Number(row?.["batch_no"] ?? 0), last_no: Number(row?.["last_no"] ?? 0) };
}

/** Records the pruning. A head_mismatch to be removed is written again, so that pruning never hides damage. */
async function recordPruning({ engine, seal, now }: RecordStore, boundary: BatchEnd, cutoff: Date): Promise<number> {
  const mismatchToKeep = await engine.read(() => findMismatchToKeep(boundary.last_no));
  const at = now().toISOString();
  const trail = openTrail(seal);
  try {
    const { head, rows } = await engine.write(() => appendPrune(trail, boundary, mismatchToKeep, cutoff, at));
    trail.advanceHeads(head);
    return rows;
  } finally {
    trail.close();
  }
}

function* appendPrune(
  trail: Trail,
  { batch_no, last_no }: BatchEnd,
  mismatchToKeep: AuditEntry | null,
  cutoff: Date,
  at: string,
): Work<{ head: ChainHead; rows: number }> {
  const previous = yield* readAnchor();
  const rows = last_no - previous.last_no;
  const body = JSON.stringify({ pruned_before: cutoff.toISOString(), batch_no, last_no, rows });
  const entry = { kind: "prune" as const, execution_id: null, run_id: null, attempt: null, at, body };
  const head = yield* trail.append(mismatchToKeep === null ? [entry] : [entry, mismatchToKeep], at);
  return { head, rows };
}

/** Returns true when nothing is left to remove. Rows and anchor change together, so the chain verifies at any time. */
function* removeChunk(computeMac: ComputeMac, until: number, cutoff: Date, now: Date): Work<boolean> {
  const previous = yield* readAnchor();
  const chunk = yield* findNextChunk(previous.batch_no, until);
  if (chunk === null) return true;
  const { batch_no, last_no } = chunk;
  const newAnchor = { ...chunk, pruned_before: cutoff.toISOString(), at: now.toISOString() };
  yield write(deleteRows, previous.last_no, last_no);
  yield write(deleteBatches, previous.batch_no, batch_no);
  yield write(deleteOpen, last_no);
  yield write(deleteAnchors);
  yield write(
    insertAnchor,
    batch_no,
    last_no,
    newAnchor.pruned_before,
    newAnchor.at,
    newAnchor.mac,
    sealAnchor(computeMac, newAnchor),
  );
  return batch_no >= until;
}

/** The last batch of the next chunk to remove. */
function* findNextChunk(after: number, until: number): Work<Batch | null> {
  const [next] = yield first(selectFirst, after);
  if (next === undefined) return null;
  const from = Number(next["batch_no"]);
  const to = Math.min(until, from + chunkSize);
  const [row] = yield first(selectChunk, from, to, Number(next["first_no"]) + chunkSize);
  // The statement selects exactly these columns, which are not null.
  return row === undefined ? null : (row as unknown as Batch);
}
