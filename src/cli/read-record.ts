import { existsSync } from "node:fs";
import { join } from "node:path";
import { findLocal, openLocalStore } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import type { SqliteStore } from "../record/open.ts";
import { write } from "./io.ts";
import type { CommandInput } from "./options.ts";
import { sweepInterrupted } from "./sweep.ts";

/** Opens this place's record for reading, first writing the ends that a killed Drover could not. */
export async function withRecord<T>(input: CommandInput, work: (store: SqliteStore) => Promise<T>): Promise<T | null> {
  const local = await findLocal(input.env, input.cwd);
  if (!existsSync(join(local.places.stateDirectory, "drover.db"))) {
    if (!input.options["quiet"]) {
      write(2, `No record yet in ${local.places.stateDirectory}. Make the first: drover exec "echo hello"\n`);
    }
    return null;
  }
  const store = await openLocalStore(local);
  try {
    await sweepInterrupted(store);
    return await work(store);
  } finally {
    await store.close();
  }
}

/** A run by its id or the beginning of it, where only one run begins so. */
export async function findRun(store: SqliteStore, id: string): Promise<Run> {
  const matches = /^[0-9a-f-]{4,36}$/.test(id) ? await runIdsBeginning(store, id) : [];
  const run = matches.length === 1 ? await store.read.run(matches[0]!) : null;
  if (run) return run;
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "RUN",
    message: matches.length > 1 ? `More than one run begins with ${id}: ${matches.join(", ")}.` : `There is no run ${id} here.`,
    next: "`drover runs list` shows the runs of this state directory.",
  });
}

/** Ids sort as text, and no character of an id is greater than "f": the page before `PREFIXg` begins with them. */
async function runIdsBeginning(store: SqliteStore, prefix: string): Promise<string[]> {
  const page = await store.read.runs({}, { before: `${prefix}g`, limit: 3 });
  return page.map(({ run_id }) => run_id).filter((run_id) => run_id.startsWith(prefix));
}
