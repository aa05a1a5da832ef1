import { rm } from "node:fs/promises";
import { join } from "node:path";
import { logsDirectory } from "../model/state-layout.ts";
import { toHostError } from "./sqlite/errors.ts";

/** Every run id matches. Anything else could escape from the directory. */
const plainNamePattern = /^[\w-]+$/;

/** Removes the stdout and stderr files of runs. */
export async function removeOutput(directory: string, run_ids: readonly string[]): Promise<void> {
  for (const run_id of run_ids.filter((name) => plainNamePattern.test(name))) {
    for (const stream of ["stdout", "stderr"]) {
      const file = join(logsDirectory(directory), `${run_id}.${stream}`);
      await rm(file, { force: true }).catch((error: unknown) => {
        throw toHostError(error, file);
      });
    }
  }
}
