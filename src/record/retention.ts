import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pruneBlobs } from "./blobs/prune-blobs.ts";
import type { SqliteStore } from "./open.ts";
import { uuidTimeBounds } from "./reads/uuid-time.ts";
import type { Connection } from "./sqlite/connection.ts";
import { hostFault } from "./sqlite/faults.ts";
import { patiently } from "./sqlite/patience.ts";
import { toColumn } from "./text.ts";
import { underWriteLock } from "./write-lock.ts";

interface OldRun {
  run_no: number;
  run_id: string;
}

const runsAtOnce = 100;
/** Deleted in one transaction: others wait for a few milliseconds only, however long a run's log is. */
const eventsAtOnce = 1000;

// The run of the newest event stays: its cursor must not be given out a second time.
const selectOld = `
  select run_no, run_id from runs
  where run_id > ? and run_id <= ? and status in ('completed', 'failed', 'cancelled') and finished_at < ?
    and run_no <> coalesce((select run_no from events order by cursor desc limit 1), 0)
  order by run_id limit ?`;
const deleteEvents = `
  delete from events where cursor in (select cursor from events where run_no = ? order by seq limit ?)`;
const deleteBody = `delete from run_bodies where run_no = ?`;
const deleteFiles = `delete from files where run_no = ?`;
const deleteUploads = `delete from uploads where run_no = ?`;
const deleteRun = `delete from runs where run_no = ?`;

/** Removes finished runs from before a time, with their events, files and the output that was kept apart. Their audit rows have a retention of their own. */
export async function pruneRuns(store: SqliteStore, before: Date): Promise<{ runs: number }> {
  const { connection, lockWaitMs, directory } = store;
  let runs = 0;
  for (let after = ""; ;) {
    const old = await patiently(() => oldRuns(connection, before, after), connection.file, lockWaitMs);
    after = old.at(-1)?.run_id ?? after;
    if (old.length === 0) break;
    runs += old.length;
    // Before the rows: whoever is interrupted here finds the run again.
    await removeOutput(join(directory, "logs"), old);
    while (old.length > 0) {
      await underWriteLock(connection, lockWaitMs, () => deleteSome(connection, old));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
  if (runs > 0) await pruneBlobs(store, store.now());
  return { runs };
}

function oldRuns(connection: Connection, before: Date, after: string): OldRun[] {
  const time = before.toISOString();
  const rows = connection.sql(selectOld).all(after, uuidTimeBounds(undefined, time).most, toColumn(time), runsAtOnce);
  // The statement selects exactly these columns.
  return rows as unknown as OldRun[];
}

/** No id of ours is anything else; one that were must not lead out of the folder. */
const plainName = /^[\w-]+$/;

async function removeOutput(folder: string, runs: readonly OldRun[]): Promise<void> {
  for (const { run_id } of runs.filter((run) => plainName.test(run.run_id))) {
    for (const stream of ["stdout", "stderr"]) {
      const file = join(folder, `${run_id}.${stream}`);
      await rm(file, { force: true }).catch((fault: unknown) => {
        throw hostFault(fault, file);
      });
    }
  }
}

/** Takes from `old` what was deleted as a whole. */
function deleteSome(connection: Connection, old: OldRun[]): void {
  let left = eventsAtOnce;
  for (let run = old[0]; run !== undefined && left > 0; run = old[0]) {
    left -= Number(connection.sql(deleteEvents).run(run.run_no, left).changes);
    if (left <= 0) return;
    for (const statement of [deleteBody, deleteFiles, deleteUploads, deleteRun])
      connection.sql(statement).run(run.run_no);
    old.shift();
  }
}
