import { existsSync } from "node:fs";
import { readDatabaseUrl } from "../define/database-settings.ts";
import { type Project, openLocalStore } from "../local.ts";
import { HostError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import { databaseFile, recordDirectory } from "../model/state-layout.ts";
import { readHeadCopy } from "../record/audit/head.ts";
import type { ApiClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { sweepInterrupted } from "./sweep-interrupted.ts";
import { findDroverCommand } from "./drover-command.ts";

/** With a coordinator, runs can also be followed. */
type Work<T> = (client: ApiClient, hasCoordinator: boolean) => Promise<T>;

/**
 * Calls `work` with a client that reads the record through the coordinator if there is one, and directly otherwise. If
 * there is no record yet, prints a hint to stderr and returns null.
 */
export async function withRecord<T>(input: CommandInput, work: Work<T>): Promise<T | null> {
  const { client, project } = await connect(input);
  if (client) return work(client, true);
  const database = readDatabaseUrl(input.env);
  return database === null ? withDirectory(input, project, work) : withDatabase(database, work);
}

async function withDatabase<T>(url: string, work: Work<T>): Promise<T> {
  const { openPostgresReader } = await import("../record/postgres/reader.ts");
  const { createRecordClient } = await import("../compose/record-client.ts");
  const reader = await openPostgresReader(url);
  try {
    return await work(createRecordClient({ ...reader, apply: refuseToWrite }), false);
  } finally {
    reader.close();
  }
}

/** Only a fleet's coordinators may write its record, because they keep active runs in memory. */
async function refuseToWrite(): Promise<never> {
  throw new HostError({
    code: "DROVER-API-023",
    field: "DATABASE_URL",
    message: "Only a coordinator can change a fleet's record, and none was found.",
    next: "Set DROVER_API_URL and DROVER_API_KEY to use a coordinator.",
  });
}

async function withDirectory<T>(input: CommandInput, project: Project, work: Work<T>): Promise<T | null> {
  if (!existsSync(databaseFile(recordDirectory(project.locations.stateDirectory)))) {
    if (!input.options["quiet"]) write(2, describeMissingRecord(project));
    return null;
  }
  const { createRecordClient } = await import("../compose/record-client.ts");
  const store = await openLocalStore(project);
  try {
    // Finish runs whose Drover process was killed.
    await sweepInterrupted(store, project.locations.stateDirectory);
    return await work(createRecordClient(store), false);
  } finally {
    await store.close();
  }
}

function describeMissingRecord({ locations: { stateDirectory, headCopy } }: Project): string {
  const head = headCopy === undefined ? null : readHeadCopy(headCopy);
  return head !== null && head.count > 0
    ? `The record in ${stateDirectory} is missing; it had ${head.count} audit rows. Restore it from a backup. For details: ${findDroverCommand()} audit verify\n`
    : `${stateDirectory} has no record yet. Create one: ${findDroverCommand()} exec "echo hello"\n`;
}

/** Reads the events of a run page by page, because there may be many. */
export async function* readAllEvents({ runs }: ApiClient, run_id: string, after = 0): AsyncGenerator<StoredEvent> {
  for (let next: number | null = after; next !== null;) {
    const page = await runs.events(run_id, { after: next, limit: 1000 });
    yield* page.items;
    next = page.next_cursor;
  }
}
