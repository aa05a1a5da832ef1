import type { StoredEvent } from "../model/event.ts";
import type { Session, SessionReads } from "../model/session.ts";
import type { Execution, Page, Reads, RunFilter, RunRow } from "../model/store.ts";
import { toCursor } from "./cursor.ts";
import type { Owners } from "./owners.ts";

export interface Listed<T> {
  items: T[];
  next_cursor: string | null;
}

/** `only`: whose objects are seen, null for everyone's. */
type Only = string | null;

/** How many rows one request looks through for what its asker may see; the cursor goes on from there. */
const mostScanned = 5000;

export async function listRuns(read: Reads, filter: RunFilter, page: Page, only: Only): Promise<Listed<RunRow>> {
  const rows = await read.runs(only === null ? filter : { ...filter, created_by: only }, page);
  return fullPage("runs", rows, page.limit, (row) => row.run_id);
}

export async function listSessions(
  read: SessionReads,
  filter: { agent_name?: string },
  page: Page,
  only: Only,
): Promise<Listed<Session>> {
  const rows = await read.sessions(only === null ? filter : { ...filter, created_by: only }, page);
  return fullPage("sessions", rows, page.limit, (row) => row.session_id);
}

export async function listExecutions(
  read: Reads,
  filter: { run_id?: string; open?: boolean },
  page: Page,
  only: Only,
  owners: Owners,
): Promise<Listed<Execution>> {
  const items: Execution[] = [];
  let before = page.before;
  for (let scanned = 0; scanned < mostScanned;) {
    const rows = await read.executions(filter, { limit: page.limit, ...(before === undefined ? {} : { before }) });
    for (const row of rows) {
      before = row.start.execution_id;
      if (only !== null && (await owners(row.run_id)) !== only) continue;
      items.push(row);
      if (items.length === page.limit) return { items, next_cursor: toCursor("executions", before) };
    }
    scanned += rows.length;
    if (rows.length < page.limit) return { items, next_cursor: null };
  }
  return { items, next_cursor: before === undefined ? null : toCursor("executions", before) };
}

/** Events of all runs in commit order, and where to go on: also past events that were not the asker's. */
export async function readFeed(
  read: Reads,
  after: number,
  limit: number,
  only: Only,
  owners: Owners,
): Promise<{ events: StoredEvent[]; reached: number }> {
  const events: StoredEvent[] = [];
  let reached = after;
  for (let scanned = 0; scanned < mostScanned && events.length < limit;) {
    const rows = await read.feed(reached, limit);
    for (const row of rows) {
      if (events.length === limit) break;
      reached = row.cursor;
      if (only === null || (await owners(row.run_id)) === only) events.push(row);
    }
    scanned += rows.length;
    if (rows.length < limit) break;
  }
  return { events, reached };
}

function fullPage<T>(list: string, items: T[], limit: number, idOf: (item: T) => string): Listed<T> {
  const last = items.at(-1);
  return { items, next_cursor: last === undefined || items.length < limit ? null : toCursor(list, idOf(last)) };
}
