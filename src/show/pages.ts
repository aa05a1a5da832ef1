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

/** The user whose objects are visible. null means that all are. */
type Owner = string | null;

/** How many rows one request scans for visible ones. The next request continues from the cursor. */
const maxScannedRows = 5000;

export async function listRuns(read: Reads, filter: RunFilter, page: Page, owner: Owner): Promise<ListPage<RunRow>> {
  if (excludesOwner(filter, owner)) return { items: [], next_cursor: null };
  const ownFilter = owner === null ? filter : { ...filter, created_by: owner };
  const items = await read.runs(ownFilter, { ...page, limitBytes: true });
  const last = items.at(-1)?.run_id;
  if (last === undefined) return { items, next_cursor: null };
  // The page may be shorter than `limit` if the runs are large, so look for one more.
  const hasMore = items.length === page.limit || (await read.runs(ownFilter, { limit: 1, before: last })).length > 0;
  return { items, next_cursor: hasMore ? toCursor("runs", last) : null };
}

/** Whether the filter names another user, whose objects this caller does not see. */
function excludesOwner({ created_by }: { created_by?: string }, owner: Owner): boolean {
  return owner !== null && created_by !== undefined && created_by !== owner;
}

export async function findRuns(
  read: Reads,
  text: string,
  filter: RunFilter,
  page: Page,
  owner: Owner,
): Promise<ListPage<FoundRun> & { indexing: boolean }> {
  if (excludesOwner(filter, owner)) return { items: [], next_cursor: null, indexing: false };
  const { items, next, indexing } = await read.search(
    text,
    owner === null ? filter : { ...filter, created_by: owner },
    page,
  );
  return { items, next_cursor: next === null ? null : toCursor("search", next), indexing };
}

export async function listSessions(
  read: SessionReads,
  filter: SessionFilter,
  page: Page,
  owner: Owner,
): Promise<ListPage<Session>> {
  if (excludesOwner(filter, owner)) return { items: [], next_cursor: null };
  const rows = await read.sessions(owner === null ? filter : { ...filter, created_by: owner }, page);
  return toPage("sessions", rows, page.limit, (row) => row.session_id);
}

export function listExecutions(
  read: Reads,
  filter: { run_id?: string; open?: boolean },
  page: Page,
  owner: Owner,
  owners: OwnerLookup,
): Promise<ListPage<Execution>> {
  return readVisiblePage("executions", page, {
    read: (part) => read.executions(filter, { ...part, limitBytes: true }),
    getId: (row) => row.start.execution_id,
    isVisible: async (row) => owner === null || (await owners(row.run_id)) === owner,
  });
}

export function listTokens(
  read: TokenReads,
  page: Page,
  isVisible: (token: Token) => boolean,
): Promise<ListPage<Token>> {
  return readVisiblePage("tokens", page, {
    read: (part) => read.tokens(part),
    getId: (token) => token.token_id,
    isVisible: async (token) => isVisible(token),
  });
}

interface VisibleRows<T> {
  read(page: Page): Promise<T[]>;
  getId(row: T): string;
  isVisible(row: T): Promise<boolean>;
}

/** For lists that the store cannot filter by owner: reads until the page is full of rows that the caller may see. */
async function readVisiblePage<T>(
  list: string,
  page: Page,
  { read, getId, isVisible }: VisibleRows<T>,
): Promise<ListPage<T>> {
  const items: T[] = [];
  let before = page.before;
  let bytes = 0;
  // Read larger batches if few rows are visible.
  for (let scanned = 0, limit = page.limit; scanned < maxScannedRows; limit = Math.min(limit * 2, 1000)) {
    const rows = await read({ limit, ...(before === undefined ? {} : { before }) });
    for (const row of rows) {
      if (await isVisible(row)) {
        bytes += JSON.stringify(row).length;
        if (bytes > maxPageBytes && items.length > 0 && before !== undefined)
          return { items, next_cursor: toCursor(list, before) };
        items.push(row);
      }
      before = getId(row);
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
  owner: Owner,
  owners: OwnerLookup,
): Promise<{ events: StoredEvent[]; reached: number }> {
  const events: StoredEvent[] = [];
  let reached = after;
  for (let scanned = 0; scanned < maxScannedRows && events.length < limit;) {
    const rows = await read.feed(reached, limit, maxBytes);
    for (const row of rows) {
      if (events.length === limit) break;
      reached = row.cursor;
      if (owner === null || (await owners(row.run_id)) === owner) events.push(row);
    }
    scanned += rows.length;
    if (rows.length < limit) break;
  }
  return { events, reached };
}

function toPage<T>(list: string, items: T[], limit: number, getId: (item: T) => string): ListPage<T> {
  const last = items.at(-1);
  return { items, next_cursor: last === undefined || items.length < limit ? null : toCursor(list, getId(last)) };
}
