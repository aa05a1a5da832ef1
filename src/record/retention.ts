import { indexExists } from "./search/index-events.ts";
import { statusIn } from "./moves/statuses.ts";
import { all, write, type Work } from "./query.ts";
import { toUuidTimeBounds } from "./reads/uuid-time.ts";
import type { RecordStore } from "./record-store.ts";
import { toColumn } from "./text.ts";

interface OldRun {
  run_no: number;
  run_id: string;
}

const runsPerPage = 100;
/** Events deleted per transaction, so that other writers wait only a few milliseconds however long a log is. */
const eventsPerTransaction = 1000;

/** Selects runs that finished before a given time and match `condition`. */
const selectRunsWhere = (condition: string): string => `
  select run_no, run_id from runs
  where run_id > ? and run_id <= ? and ${statusIn("ended")} and finished_at < ? and ${condition}
  order by run_id limit ?`;
// Keep the run with the newest event: SQLite would reuse its cursor.
const selectOld = selectRunsWhere(`run_no <> coalesce((select run_no from events order by cursor desc limit 1), 0)`);
const selectLogged = selectRunsWhere(
  `exists (select 1 from events where events.run_no = runs.run_no and seq < runs.last_seq)`,
);
const selectWithFiles = selectRunsWhere(`exists (select 1 from files where files.run_no = runs.run_no)`);
const deleteEvents = `
  delete from events where cursor in (select cursor from events where run_no = ? order by seq limit ?) returning 1 as gone`;
const deleteLog = `
  delete from events where cursor in (
    select cursor from events where run_no = ?1 and seq < (select last_seq from runs where run_no = ?1) order by seq limit ?2)
  returning 1 as gone`;
const deleteBody = `delete from run_bodies where run_no = ?`;
const deleteFiles = `delete from files where run_no = ?`;
const deleteUploads = `delete from uploads where run_no = ?`;
const deleteQuestions = `delete from questions where run_no = ?`;
const deleteWebhooks = `delete from run_webhooks where run_no = ?`;
const deleteDeliveries = `delete from deliveries where run_no = ?`;
const deleteChain = `delete from chains where parent_run_no = ?`;
const deleteRun = `delete from runs where run_no = ?`;

/**
 * Removes runs that finished before a given time, with their events, files and output files. Audit rows have their own
 * retention.
 */
export async function pruneRuns(store: RecordStore, cutoff: Date): Promise<{ runs: number }> {
  const indexRemovals = await listIndexRemovals(store, "remove");
  const triggers = [deleteWebhooks, deleteDeliveries, deleteChain];
  const rows = [deleteBody, deleteFiles, deleteUploads, deleteQuestions, ...triggers, ...indexRemovals, deleteRun];
  const remove = { events: deleteEvents, rows };
  const runs = await pruneOldRuns(store, cutoff, selectOld, remove);
  if (runs > 0) await store.pruneBlobs(store.now());
  return { runs };
}

/** Removes the logs of runs that finished before a given time: all events but the result, and the output files. */
export async function pruneEvents(store: RecordStore, cutoff: Date): Promise<number> {
  const rows = await listIndexRemovals(store, "removeEvents");
  return pruneOldRuns(store, cutoff, selectLogged, { events: deleteLog, rows });
}

/**
 * Removes the files of runs that finished before a given time. pruneBlobs removes the contents once no other run uses them.
 */
export function pruneFiles(store: RecordStore, cutoff: Date): Promise<number> {
  return pruneOldRuns(store, cutoff, selectWithFiles, { events: null, rows: [deleteFiles] });
}

/** Lists the statement that removes a run from the search index, if there is an index. */
async function listIndexRemovals({ engine }: RecordStore, statement: "remove" | "removeEvents"): Promise<string[]> {
  return (await indexExists(engine)) ? [engine.search[statement]] : [];
}

/** What to delete for each run. */
interface Removal {
  events: string | null;
  rows: string[];
}

async function pruneOldRuns(store: RecordStore, cutoff: Date, select: string, removal: Removal): Promise<number> {
  let removedCount = 0;
  for (let after = ""; ;) {
    const page = await store.engine.read(() => readOldRuns(select, cutoff, after));
    after = page.at(-1)?.run_id ?? after;
    if (page.length === 0) return removedCount;
    removedCount += page.length;
    // Remove the output before the rows: if this is interrupted, the next call finds the run again.
    if (removal.events !== null) await store.removeOutput(page.map(({ run_id }) => run_id));
    while (page.length > 0) {
      page.splice(0, await store.engine.write(() => deleteRuns(page, removal)));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
}

function* readOldRuns(select: string, cutoff: Date, after: string): Work<OldRun[]> {
  const time = cutoff.toISOString();
  const rows = yield all(select, after, toUuidTimeBounds(undefined, time).max, toColumn(time), runsPerPage);
  // The statement selects exactly these columns.
  return rows as unknown as OldRun[];
}

/** Returns how many runs at the start of `oldRuns` were removed completely. */
function* deleteRuns(oldRuns: readonly OldRun[], { events, rows }: Removal): Work<number> {
  let remainingEvents = eventsPerTransaction;
  for (const [index, { run_no }] of oldRuns.entries()) {
    if (events !== null) remainingEvents -= (yield all(events, run_no, remainingEvents)).length;
    if (remainingEvents <= 0) return index;
    for (const statement of rows) yield write(statement, run_no);
  }
  return oldRuns.length;
}
