import type { StoredEvent } from "../model/event.ts";
import type { Session, SessionFilter, SessionReads } from "../model/session.ts";
import type { Execution, FoundRun, Page, Reads, RunFilter, RunRow } from "../model/store.ts";
import type { Token, TokenReads } from "../model/token.ts";
import { toCursor } from "./cursor.ts";
import type { OwnerLookup } from "./owner-lookup.ts";

export interface ListPage<T> {
  items: T[];
  next_cursor: string | null;
}

/** The user whose objects are visible; null for everyone's. */
type Only = string | null;

/** How many rows one request scans for visible ones. The cursor continues from there. */
const maxScanned = 5000;

export async function listRuns(read: Reads, filter: RunFilter, page: Page, only: Only): Promise<ListPage<RunRow>> {
  if (excludesOwn(filter, only)) return { items: [], next_cursor: null };
  const own = only === null ? filter : { ...filter, created_by: only };
  const items = await read.runs(own, { ...page, bounded: true });
  const last = items.at(-1)?.run_id;
  if (last === undefined) return { items, next_cursor: null };
  // The page may be shorter than `limit` if the runs are large, so look for one more.
  const hasMore = items.length === page.limit || (await read.runs(own, { limit: 1, before: last })).length > 0;
  return { items, next_cursor: hasMore ? toCursor("runs", last) : null };
}

/** Whether the filter names another user, whose objects this caller does not see. */
function excludesOwn({ created_by }: { created_by?: string }, only: Only): boolean {
  return only !== null && created_by !== undefined && created_by !== only;
}

export async function findRuns(
  read: Reads,
  text: string,
  filter: RunFilter,
  page: Page,
  only: Only,
): Promise<ListPage<FoundRun> & { indexing: boolean }> {
  if (excludesOwn(filter, only)) return { items: [], next_cursor: null, indexing: false };
  const { items, next, indexing } = await read.search(
    text,
    only === null ? filter : { ...filter, created_by: only },
    page,
  );
  return { items, next_cursor: next === null ? null : toCursor("search", next), indexing };
}

export async function listSessions(
  read: SessionReads,
  filter: SessionFilter,
  page: Page,
  only: Only,
): Promise<ListPage<Session>> {
  if (excludesOwn(filter, only)) return { items: [], next_cursor: null };
  const rows = await read.sessions(only === null ? filter : { ...filter, created_by: only }, page);
  return fullPage("sessions", rows, page.limit, (row) => row.session_id);
}

export function listExecutions(
  read: Reads,
  filter: { run_id?: string; open?: boolean },
  page: Page,
  only: Only,
  owners: OwnerLookup,
): Promise<ListPage<Execution>> {
  return visiblePage("executions", page, {
    read: (part) => read.executions(filter, { ...part, bounded: true }),
    idOf: (row) => row.start.execution_id,
    isVisible: async (row) => only === null || (await owners(row.run_id)) === only,
  });
}

export function listTokens(
  read: TokenReads,
  page: Page,
  isVisible: (token: Token) => boolean,
): Promise<ListPage<Token>> {
  return visiblePage("tokens", page, {
    read: (part) => read.tokens(part),
    idOf: (token) => token.token_id,
    isVisible: async (token) => isVisible(token),
  });
}

interface VisibleRows<T> {
  read(page: Page): Promise<T[]>;
  idOf(row: T): string;
  isVisible(row: T): Promise<boolean>;
}

/** For lists the store cannot filter by owner: reads until the page is full of rows the caller may see. */
async function visiblePage<T>(
  list: string,
  page: Page,
  { read, idOf, isVisible }: VisibleRows<T>,
): Promise<ListPage<T>> {
  const items: T[] = [];
  let before = page.before;
  let bytes = 0;
  // read larger batches if few rows are visible
  for (let scanned = 0, limit = page.limit; scanned < maxScanned; limit = Math.min(limit * 2, 1000)) {
    const rows = await read({ limit, ...(before === undefined ? {} : { before }) });
    for (const row of rows) {
      if (await isVisible(row)) {
        bytes += JSON.stringify(row).length;
        if (bytes > maxPageBytes && items.length > 0 && before !== undefined)
          return { items, next_cursor: toCursor(list, before) };
        items.push(row);
      }
      before = idOf(row);
      if (items.length === page.limit) return { items, next_cursor: toCursor(list, before) };
    }
    scanned += rows.length;
    // A batch of large rows is shorter than `limit`, so only an empty one is the end.
    if (rows.length === 0) return { items, next_cursor: null };
  }
  return { items, next_cursor: before === undefined ? null : toCursor(list, before) };
}

/** The approximate size of the items in one response. */
export const maxPageBytes = 512 * 1024;

/** Reads events of all runs in commit order. `reached` is the position to continue from, past events the caller may not see. */
export async function readFeed(
  read: Reads,
  after: number,
  { limit, maxBytes }: { limit: number; maxBytes: number },
  only: Only,
  owners: OwnerLookup,
): Promise<{ events: StoredEvent[]; reached: number }> {
  const events: StoredEvent[] = [];
  let reached = after;
  for (let scanned = 0; scanned < maxScanned && events.length < limit;) {
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

function fullPage<T>(list: string, items: T[], limit: number, idOf: (item: T) => string): ListPage<T> {
  const last = items.at(-1);
  return { items, next_cursor: last === undefined || items.length < limit ? null : toCursor(list, idOf(last)) };
}
