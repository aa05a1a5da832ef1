import type { StoredEvent } from "../model/event.ts";
import type { Session, SessionReads } from "../model/session.ts";
import type { Execution, FoundRun, Page, Reads, RunFilter, RunRow } from "../model/store.ts";
import type { Token, TokenReads } from "../model/token.ts";
import { toCursor } from "./cursor.ts";
import type { OwnerLookup } from "./owner-lookup.ts";

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

export async function findRuns(
  read: Reads,
  text: string,
  filter: RunFilter,
  page: Page,
  only: Only,
): Promise<Listed<FoundRun> & { indexing: boolean }> {
  const { items, next, indexing } = await read.search(
    text,
    only === null ? filter : { ...filter, created_by: only },
    page,
  );
  return { items, next_cursor: next === null ? null : toCursor("search", next), indexing };
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

export function listExecutions(
  read: Reads,
  filter: { run_id?: string; open?: boolean },
  page: Page,
  only: Only,
  owners: OwnerLookup,
): Promise<Listed<Execution>> {
  return pageOfSeen("executions", page, {
    read: (part) => read.executions(filter, part),
    idOf: (row) => row.start.execution_id,
    sees: async (row) => only === null || (await owners(row.run_id)) === only,
  });
}

export function listTokens(read: TokenReads, page: Page, sees: (token: Token) => boolean): Promise<Listed<Token>> {
  return pageOfSeen("tokens", page, {
    read: (part) => read.tokens(part),
    idOf: (token) => token.token_id,
    sees: async (token) => sees(token),
  });
}

interface Seen<T> {
  read(page: Page): Promise<T[]>;
  idOf(row: T): string;
  sees(row: T): Promise<boolean>;
}

/** For what the store does not sort by owner: reads on until the page is full of what the asker may see. */
async function pageOfSeen<T>(list: string, page: Page, { read, idOf, sees }: Seen<T>): Promise<Listed<T>> {
  const items: T[] = [];
  let before = page.before;
  // more at a time where little of it is theirs
  for (let scanned = 0, limit = page.limit; scanned < mostScanned; limit = Math.min(limit * 2, 1000)) {
    const rows = await read({ limit, ...(before === undefined ? {} : { before }) });
    for (const row of rows) {
      before = idOf(row);
      if (!(await sees(row))) continue;
      items.push(row);
      if (items.length === page.limit) return { items, next_cursor: toCursor(list, before) };
    }
    scanned += rows.length;
    if (rows.length < limit) return { items, next_cursor: null };
  }
  return { items, next_cursor: before === undefined ? null : toCursor(list, before) };
}

/** What one answer has of the events, about. */
export const maxPageBytes = 512 * 1024;

/** Events of all runs in commit order, and where to go on: also past events that were not the asker's. */
export async function readFeed(
  read: Reads,
  after: number,
  { limit, maxBytes }: { limit: number; maxBytes: number },
  only: Only,
  owners: OwnerLookup,
): Promise<{ events: StoredEvent[]; reached: number }> {
  const events: StoredEvent[] = [];
  let reached = after;
  for (let scanned = 0; scanned < mostScanned && events.length < limit;) {
    const rows = await read.feed(reached, limit, maxBytes);
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
