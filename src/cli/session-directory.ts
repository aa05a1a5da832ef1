import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Local, openLocalStore } from "../local.ts";
import { findSession, sessionsInStore } from "./session-history.ts";

/**
 * A session goes on with its runner only, and which runner that is depends on the directory it was started in. A
 * runner that lives as long as one command leaves nothing behind that tells it, so it is noted beside the record.
 */
export function noteDirectory({ places }: Local, runnerIds: readonly string[], directory: string): void {
  mkdirSync(notes(places.stateDirectory), { recursive: true, mode: 0o700 });
  for (const runnerId of runnerIds) {
    const file = join(notes(places.stateDirectory), runnerId);
    // the id is made of the directory: what is there is right
    if (existsSync(file)) continue;
    writeFileSync(`${file}.${process.pid}`, directory, { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
  }
}

/** Where the runner of a session was started; null where that is not known. */
export async function directoryOfSession(local: Local, id: string): Promise<string | null> {
  const { stateDirectory } = local.places;
  if (!existsSync(join(stateDirectory, "drover.db"))) return null;
  const store = await openLocalStore(local);
  try {
    const { runner_id } = await findSession(sessionsInStore(store), id);
    if (runner_id === null) return null;
    const file = join(notes(stateDirectory), runner_id);
    if (existsSync(file)) return readFileSync(file, "utf8");
    return (await store.read.runner(runner_id))?.project_dir ?? null;
  } finally {
    await store.close();
  }
}

function notes(stateDirectory: string): string {
  return join(stateDirectory, "directories");
}
