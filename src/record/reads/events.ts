import type { StoredEvent } from "../../model/event.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

const columns = `
  runs.run_id, events.seq, events.attempt, events.n, events.at, events.cursor,
  events.received_at, events.body`;
const fromRun = "from runs join events using (run_no) where runs.run_id = ? and events.seq > ?";
const fromAll = "from events join runs using (run_no) where events.cursor > ?";
const sizesOfRun = `select events.seq as position, octet_length(events.body) as size ${fromRun} order by events.seq limit ?`;
const sizesOfAll = `select events.cursor as position, octet_length(events.body) as size ${fromAll} order by events.cursor limit ?`;
const pageOfRun = `select ${columns} ${fromRun} and events.seq <= ? order by events.seq`;
const pageOfAll = `select ${columns} ${fromAll} and events.cursor <= ? order by events.cursor`;
const lastOfRun = `select last_seq as position from runs where run_id = ?`;
const lastOfAll = `select max(cursor) as position from events`;

/** Limits the total size of the bodies on a page, so that no reader delays the others. */
const defaultPageBytes = 512 * 1024;

export function* readEvents(run_id: string, after: number, limit: number, maxBytes?: number): Work<StoredEvent[]> {
  const run = toColumn(run_id);
  const last = findLastFitting(yield all(sizesOfRun, run, after, limit), maxBytes);
  return last === null ? [] : (yield all(pageOfRun, run, after, last)).map(toStoredEvent);
}

export function* readFeed(after: number, limit: number, maxBytes?: number): Work<StoredEvent[]> {
  const last = findLastFitting(yield all(sizesOfAll, after, limit), maxBytes);
  return last === null ? [] : (yield all(pageOfAll, after, last)).map(toStoredEvent);
}

/** How many rows fit on a page by their `size`. A row larger than a page gets a page of its own. */
export function countFittingRows(rows: readonly Row[]): number {
  let remainingBytes = defaultPageBytes;
  const firstTooLarge = rows.findIndex(({ size }, index) => (remainingBytes -= Number(size)) < 0 && index > 0);
  return firstTooLarge < 0 ? rows.length : firstTooLarge;
}

/** Position of the last event on a page. An event larger than a page gets a page of its own. */
function findLastFitting(rows: readonly Row[], maxBytes = defaultPageBytes): number | null {
  let last: number | null = null;
  let remainingBytes = maxBytes;
  for (const row of rows) {
    const size = Number(row["size"]);
    if (last !== null && size > remainingBytes) break;
    remainingBytes -= size;
    last = Number(row["position"]);
  }
  return last;
}

export function* readLastPosition(run_id: string | null): Work<number> {
  const [row] = yield run_id === null ? first(lastOfAll) : first(lastOfRun, toColumn(run_id));
  return Number(row?.["position"] ?? 0);
}

function toStoredEvent(row: Row): StoredEvent {
  return {
    run_id: fromColumn(String(row["run_id"])),
    seq: Number(row["seq"]),
    attempt: Number(row["attempt"]),
    n: row["n"] === null ? null : Number(row["n"]),
    at: fromColumn(String(row["at"])),
    ...(row["received_at"] === null ? {} : { received_at: new Date(Number(row["received_at"])).toISOString() }),
    cursor: Number(row["cursor"]),
    // storeEvent wrote this value from a RunEvent.
    event: JSON.parse(String(row["body"])) as StoredEvent["event"],
  };
}
