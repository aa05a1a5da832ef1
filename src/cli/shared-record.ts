import { existsSync } from "node:fs";
import { join } from "node:path";
import { findLocations } from "../define/locations.ts";
import { userStateDirectory, userWideStateDirectory } from "../define/user-state.ts";
import type { Environment } from "../model/environment.ts";
import { tryWrite } from "./io.ts";

/**
 * Prints a note if the directory looks like a project but shares the user's record. This is the case if it has profiles,
 * but neither drover.yaml nor a repository.
 */
export function noteSharedRecord(directory: string, env: Environment): void {
  const userDirectory = userStateDirectory(env);
  if (userDirectory === null || !existsSync(join(directory, "profiles"))) return;
  const { stateDirectory } = findLocations(env, directory);
  if (stateDirectory !== userWideStateDirectory(userDirectory)) return;
  tryWrite(
    2,
    "drover: This directory is not a project (no drover.yaml, no git repository), so it shares your user's record. To make it a project: touch drover.yaml\n",
  );
}
