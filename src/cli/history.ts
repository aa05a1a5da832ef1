import { existsSync } from "node:fs";
import { join } from "node:path";
import { findDatabaseUrl } from "../define/database.ts";
import { type Local, openLocalStore } from "../local.ts";
import { BugError, HostError, RequestError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { StoredFile } from "../model/file.ts";
import type { Run } from "../model/run.ts";
import type { Execution, RunFilter, RunRow, Store } from "../model/store.ts";
import { fromCursor, toCursor } from "../show/cursor.ts";
import type { Client } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { cutIsTold } from "./cut-is-told.ts";
import { write } from "./io.ts";
import { type CommandInput, usage } from "./options.ts";
import { type SessionHistory, sessionsInStore, sessionsOverHttp } from "./session-history.ts";
import { sweepInterrupted } from "./sweep.ts";

/** What has run here: asked of the coordinator where one answers, else read from the record itself. */
export interface History {
  runs(filter: RunFilter, limit: number, cursor?: string): Promise<{ items: RunRow[]; next_cursor: string | null }>;
  run(run_id: string): Promise<Run | null>;
  executions(run_id: string): Promise<Execution[]>;
  events(run_id: string, after: number): Promise<StoredEvent[]>;
  files(run_id: string): Promise<StoredFile[]>;
  content(run_id: string, file: StoredFile): Promise<AsyncIterable<Uint8Array>>;
  readonly sessions: SessionHistory;
}

/** null where nothing was ever recorded here; that is told on stderr. */
export async function withHistory<T>(input: CommandInput, work: (history: History) => Promise<T>): Promise<T | null> {
  const { client, local } = await connect(input);
  if (client) return work(overHttp(client));
  const database = findDatabaseUrl(input.env);
  return database === null ? inDirectory(input, local, work) : inDatabase(database, work);
}

async function inDatabase<T>(url: string, work: (history: History) => Promise<T>): Promise<T> {
  const { openPostgresReader } = await import("../record/postgres/reader.ts");
  const reader = await openPostgresReader(url);
  try {
    const history = inStore(reader);
    return await work({ ...history, sessions: { ...history.sessions, remove: refuseToWrite } });
  } finally {
    reader.close();
  }
}

/** Its coordinators hold what is under way, and have to hear of it. */
async function refuseToWrite(): Promise<never> {
  throw new HostError({
    code: "DROVER-API-023",
    field: "DATABASE_URL",
    message: "A fleet's record is changed by its coordinators only, and none was found.",
    next: "Name one with DROVER_API_URL and DROVER_API_KEY.",
  });
}

async function inDirectory<T>(
  input: CommandInput,
  local: Local,
  work: (history: History) => Promise<T>,
): Promise<T | null> {
  if (!existsSync(join(local.places.stateDirectory, "drover.db"))) {
    if (!input.options["quiet"]) {
      write(2, `No record yet in ${local.places.stateDirectory}. Make the first: drover exec "echo hello"\n`);
    }
    return null;
  }
  const store = await openLocalStore(local);
  try {
    // the ends that a killed Drover could not write
    await sweepInterrupted(store);
    return await work(inStore(store));
  } finally {
    await store.close();
  }
}

/** A run by its id or the beginning of it, where only one run begins so. */
export async function findRun(history: History, id: string): Promise<Run> {
  const matches = /^[0-9a-f-]{4,36}$/.test(id) ? await runIdsBeginning(history, id) : [];
  const run = matches.length === 1 ? await history.run(matches[0]!) : null;
  if (run) return run;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "RUN",
    message:
      matches.length > 1
        ? `More than one run begins with ${id}: ${matches.join(", ")}.`
        : `There is no run ${id} here.`,
    next: "`drover runs list` shows the runs.",
  });
}

/** Ids sort as text, and no character of an id is greater than "f": the page before `PREFIXg` begins with them. */
async function runIdsBeginning(history: History, prefix: string): Promise<string[]> {
  const { items } = await history.runs({}, 3, toCursor("runs", `${prefix}g`));
  return items.map(({ run_id }) => run_id).filter((run_id) => run_id.startsWith(prefix));
}

const pageSize = 1000;

function overHttp(client: Client): History {
  return {
    runs: (filter, limit, cursor) => client.runs.list({ ...filter, limit, ...(cursor ? { cursor } : {}) }),
    run: (run_id) => client.runs.get(run_id),
    executions: async (run_id) => (await client.executions.list({ run_id, limit: pageSize })).items,
    events: async (run_id, after) => (await client.runs.events(run_id, { after, limit: pageSize })).items,
    files: async (run_id) => (await client.runs.files(run_id)).items,
    content: async (run_id, { path }) => cutIsTold((await client.runs.file(run_id, path)).stream, client.url),
    sessions: sessionsOverHttp(client),
  };
}

function inStore(store: Pick<Store, "read" | "blobs" | "apply">): History {
  const { read } = store;
  return {
    async runs(filter, limit, cursor) {
      const before = cursor === undefined ? null : fromCursor("runs", cursor);
      if (cursor !== undefined && before === null)
        throw usage(`--cursor ${cursor} is not one that a list printed.`, "runs list", "--cursor");
      const items = await read.runs(filter, { limit, ...(before === null ? {} : { before }) });
      return { items, next_cursor: items.length === limit ? toCursor("runs", items.at(-1)!.run_id) : null };
    },
    run: (run_id) => read.run(run_id),
    executions: (run_id) => read.executions({ run_id }, { limit: pageSize }),
    events: (run_id, after) => read.events(run_id, after, pageSize),
    files: (run_id) => read.files(run_id),
    async content(_, { sha256, path }) {
      const blob = await store.blobs.open(sha256);
      if (blob) return blob.stream;
      throw new BugError(`the contents of ${path} are not where the record says they are`);
    },
    sessions: sessionsInStore(store),
  };
}

/** Page by page: a run's log may be large. */
export async function* allEvents(history: History, run_id: string, after = 0): AsyncGenerator<StoredEvent> {
  for (let last = after; ;) {
    const page = await history.events(run_id, last);
    yield* page;
    if (page.length < pageSize) return;
    last = page.at(-1)!.seq;
  }
}
