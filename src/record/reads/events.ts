import type { StoredEvent } from "../../model/event.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

const columns = "runs.run_id, events.seq, events.attempt, events.n, events.at, events.cursor, events.body";
const ofRun = `
  select ${columns} from runs join events using (run_no)
  where runs.run_id = ? and events.seq > ? order by events.seq limit ?`;
const ofAll = `
  select ${columns} from events join runs using (run_no)
  where events.cursor > ? order by events.cursor limit ?`;
const lastOfRun = `select last_seq as place from runs where run_id = ?`;
const lastOfAll = `select max(cursor) as place from events`;

export function* readEvents(run_id: string, after: number, limit: number): Work<StoredEvent[]> {
  return (yield all(ofRun, toColumn(run_id), after, limit)).map(eventFromRow);
}

export function* readFeed(after: number, limit: number): Work<StoredEvent[]> {
  return (yield all(ofAll, after, limit)).map(eventFromRow);
}

export function* readLastPlace(run_id: string | null): Work<number> {
  const [row] = yield run_id === null ? first(lastOfAll) : first(lastOfRun, toColumn(run_id));
  return Number(row?.["place"] ?? 0);
}

function eventFromRow(row: Row): StoredEvent {
  return {
    run_id: fromColumn(String(row["run_id"])),
    seq: Number(row["seq"]),
    attempt: Number(row["attempt"]),
    n: row["n"] === null ? null : Number(row["n"]),
    at: fromColumn(String(row["at"])),
    cursor: Number(row["cursor"]),
    // Written from a RunEvent by storeEvent.
    event: JSON.parse(String(row["body"])) as StoredEvent["event"],
  };
}
