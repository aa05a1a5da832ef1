import { isThere } from "./search/index-events.ts";
import { statusIn } from "./moves/statuses.ts";
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

/** Finished before a time, and `more`. */
const old = (more: string): string => `
  select run_no, run_id from runs
  where run_id > ? and run_id <= ? and ${statusIn("ended")} and finished_at < ? and ${more}
  order by run_id limit ?`;
// The run of the newest event stays: its cursor must not be given out a second time.
const selectOld = old(`run_no <> coalesce((select run_no from events order by cursor desc limit 1), 0)`);
const selectLogged = old(`exists (select 1 from events where events.run_no = runs.run_no and seq < runs.last_seq)`);
const selectWithFiles = old(`exists (select 1 from files where files.run_no = runs.run_no)`);
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

/** Removes finished runs from before a time, with their events, files and the output that was kept apart. Their audit rows have a retention of their own. */
export async function pruneRuns(store: RecordStore, before: Date): Promise<{ runs: number }> {
  const found = await searchedRows(store, "remove");
  const triggers = [deleteWebhooks, deleteDeliveries, deleteChain];
  const rows = [deleteBody, deleteFiles, deleteUploads, deleteQuestions, ...triggers, ...found, deleteRun];
  const remove = { events: deleteEvents, rows };
  const runs = await pruneOld(store, before, selectOld, remove);
  if (runs > 0) await store.pruneBlobs(store.now());
  return { runs };
}

/** Removes the logs of runs that finished before a time: all events but the result, and the output that was kept apart. */
export async function pruneEvents(store: RecordStore, before: Date): Promise<number> {
  const rows = await searchedRows(store, "removeOfEvents");
  return pruneOld(store, before, selectLogged, { events: deleteLog, rows });
}

/** Removes the files of runs that finished before a time. Their contents go with pruneBlobs, once no other run has them. */
export function pruneFiles(store: RecordStore, before: Date): Promise<number> {
  return pruneOld(store, before, selectWithFiles, { events: null, rows: [deleteFiles] });
}

/** What takes a run out of the search index, where there is one. */
async function searchedRows({ engine }: RecordStore, statement: "remove" | "removeOfEvents"): Promise<string[]> {
  return (await isThere(engine)) ? [engine.search[statement]] : [];
}

/** What to delete of each run. */
interface Removal {
  events: string | null;
  rows: string[];
}

async function pruneOld(store: RecordStore, before: Date, select: string, removal: Removal): Promise<number> {
  let runs = 0;
  for (let after = ""; ;) {
    const found = await store.engine.read(() => oldRuns(select, before, after));
    after = found.at(-1)?.run_id ?? after;
    if (found.length === 0) return runs;
    runs += found.length;
    // Before the rows: whoever is interrupted here finds the run again.
    if (removal.events !== null) await store.removeOutput(found.map(({ run_id }) => run_id));
    while (found.length > 0) {
      found.splice(0, await store.engine.write(() => deleteSome(found, removal)));
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
}

function* oldRuns(select: string, before: Date, after: string): Work<OldRun[]> {
  const time = before.toISOString();
  const rows = yield all(select, after, uuidTimeBounds(undefined, time).most, toColumn(time), runsAtOnce);
  // The statement selects exactly these columns.
  return rows as unknown as OldRun[];
}

/** How many of `found`, from its beginning, were dealt with as a whole. */
function* deleteSome(found: readonly OldRun[], { events, rows }: Removal): Work<number> {
  let left = eventsAtOnce;
  for (const [index, { run_no }] of found.entries()) {
    if (events !== null) left -= (yield all(events, run_no, left)).length;
    if (left <= 0) return index;
    for (const statement of rows) yield write(statement, run_no);
  }
  return found.length;
}
