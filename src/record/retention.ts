import { all, write, type Work } from "./query.ts";
import { uuidTimeBounds } from "./reads/uuid-time.ts";
import type { RecordStore } from "./record-store.ts";
import { toColumn } from "./text.ts";

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
  delete from events where cursor in (select cursor from events where run_no = ? order by seq limit ?) returning 1 as gone`;
const deleteBody = `delete from run_bodies where run_no = ?`;
const deleteFiles = `delete from files where run_no = ?`;
const deleteUploads = `delete from uploads where run_no = ?`;
const deleteRun = `delete from runs where run_no = ?`;

/** Removes finished runs from before a time, with their events, files and the output that was kept apart. Their audit rows have a retention of their own. */
export async function pruneRuns(store: RecordStore, before: Date): Promise<{ runs: number }> {
  let runs = 0;
  for (let after = ""; ;) {
    const old = await store.engine.read(() => oldRuns(before, after));
    after = old.at(-1)?.run_id ?? after;
    if (old.length === 0) break;
    runs += old.length;
    // Before the rows: whoever is interrupted here finds the run again.
    await store.removeOutput(old.map(({ run_id }) => run_id));
    while (old.length > 0) {
      old.splice(0, await store.engine.write(() => deleteSome(old)));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
  if (runs > 0) await store.pruneBlobs(store.now());
  return { runs };
}

function* oldRuns(before: Date, after: string): Work<OldRun[]> {
  const time = before.toISOString();
  const rows = yield all(selectOld, after, uuidTimeBounds(undefined, time).most, toColumn(time), runsAtOnce);
  // The statement selects exactly these columns.
  return rows as unknown as OldRun[];
}

/** How many of `old`, from its beginning, were deleted as a whole. */
function* deleteSome(old: readonly OldRun[]): Work<number> {
  let left = eventsAtOnce;
  for (const [index, { run_no }] of old.entries()) {
    left -= (yield all(deleteEvents, run_no, left)).length;
    if (left <= 0) return index;
    for (const statement of [deleteBody, deleteFiles, deleteUploads, deleteRun]) yield write(statement, run_no);
  }
  return old.length;
}
