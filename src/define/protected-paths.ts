import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { StartOptions } from "../model/process.ts";
import { cacheDirectory, listHiddenDirectories, runsDirectory } from "../model/state-layout.ts";
import type { Environment } from "../model/environment.ts";
import { requireErrorCode } from "./error-code.ts";
import { getUserConfigDirectory } from "./trust-file.ts";
import { userStateDirectory } from "./user-state.ts";

/**
 * Drover's own files that commands of `exec` and of runs must not reach. The whole user state directory is hidden, not
 * only this record. Otherwise a command could write a drover.yaml that moves the next command to another project, from
 * which the record of this project would be visible.
 */
export function listProtectedPaths(
  stateDirectory: string,
  env: Environment,
): Required<Pick<StartOptions, "hide" | "show" | "readOnly">> {
  const userDirectory = userStateDirectory(env);
  const cache = cacheDirectory(stateDirectory);
  const isInUserDirectory = userDirectory !== null && stateDirectory.startsWith(`${userDirectory}/`);
  // The user state directory is hidden as a whole, so directories inside it need not exist.
  const create = isInUserDirectory ? (directory: string): string[] => [directory] : createForMount;
  return {
    hide: [...listHiddenDirectories(stateDirectory).flatMap(create), ...createForMount(userDirectory)],
    show: [runsDirectory(stateDirectory)],
    readOnly: [...create(cache), ...createForMount(getUserConfigDirectory(env))],
  };
}

/**
 * Creates the directory if it is missing: the launcher cannot mount over a path that does not exist, and a command could
 * then create it.
 */
function createForMount(directory: string | null): string[] {
  if (directory === null) return [];
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return [directory];
  } catch (error) {
    return requireErrorCode(error) === "EACCES" && isClosedByOthers(directory) ? [] : [directory];
  }
}

/** Commands cannot reach a directory that another user closed, but they could reopen one that belongs to this user. */
function isClosedByOthers(directory: string): boolean {
  try {
    return statSync(directory).uid !== process.getuid?.();
  } catch (error) {
    requireErrorCode(error);
    return isClosedByOthers(dirname(directory));
  }
}
