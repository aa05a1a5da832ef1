import { existsSync } from "node:fs";
import { readDatabaseUrl } from "../define/database-settings.ts";
import { type Local, openLocalStore } from "../local.ts";
import { HostError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import { databaseFile, recordDirectory } from "../model/state-layout.ts";
import { readHeadCopy } from "../record/audit/head.ts";
import type { ApiClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { sweepInterrupted } from "./sweep-interrupted.ts";

/** `live`: a coordinator answers, so that a run can be followed. */
type Work<T> = (client: ApiClient, live: boolean) => Promise<T>;

/**
 * Works with what has run here: through the coordinator where one answers, else with the record itself, opened in this
 * process. null where nothing was ever recorded here, which is then written to stderr.
 */
export async function withHistory<T>(input: CommandInput, work: Work<T>): Promise<T | null> {
  const { client, local } = await connect(input);
  if (client) return work(client, true);
  const database = readDatabaseUrl(input.env);
  return database === null ? inDirectory(input, local, work) : inDatabase(database, work);
}

async function inDatabase<T>(url: string, work: Work<T>): Promise<T> {
  const { openPostgresReader } = await import("../record/postgres/reader.ts");
  const { recordClient } = await import("../compose/record-client.ts");
  const reader = await openPostgresReader(url);
  try {
    return await work(recordClient({ ...reader, apply: refuseToWrite }), false);
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

async function inDirectory<T>(input: CommandInput, local: Local, work: Work<T>): Promise<T | null> {
  if (!existsSync(databaseFile(recordDirectory(local.places.stateDirectory)))) {
    if (!input.options["quiet"]) write(2, noRecord(local));
    return null;
  }
  const { recordClient } = await import("../compose/record-client.ts");
  const store = await openLocalStore(local);
  try {
    // the ends that a killed Drover could not write
    await sweepInterrupted(store, local.places.stateDirectory);
    return await work(recordClient(store), false);
  } finally {
    await store.close();
  }
}

function noRecord({ places: { stateDirectory, headCopy } }: Local): string {
  const gone = headCopy === undefined ? null : readHeadCopy(headCopy);
  return gone !== null && gone.count > 0
    ? `The record in ${stateDirectory} is gone: it had ${gone.count} rows. Look into it with drover audit verify\n`
    : `No record yet in ${stateDirectory}. Make the first: drover exec "echo hello"\n`;
}

/** Page by page: a run's log may be large. */
export async function* allEvents({ runs }: ApiClient, run_id: string, after = 0): AsyncGenerator<StoredEvent> {
  for (let next: number | null = after; next !== null;) {
    const page = await runs.events(run_id, { after: next, limit: 1000 });
    yield* page.items;
    next = page.next_cursor;
  }
}
