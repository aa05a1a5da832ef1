import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { StartOptions } from "../model/process.ts";
import { cacheDirectory, hiddenFromCommands, runsDirectory } from "../model/state-layout.ts";
import { errorCode } from "./error-code.ts";
import { userConfigDirectory } from "./trust-file.ts";
import { userStateDirectory } from "./user-state.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What no command of `exec` or of a run may reach of Drover's own files. The whole user state folder is hidden, not this
 * record alone: a command that makes the next one belong to another project must not find the record in the open then.
 */
export function protectedPaths(
  stateDirectory: string,
  env: Environment,
): Required<Pick<StartOptions, "hide" | "show" | "readOnly">> {
  const userFolder = userStateDirectory(env);
  const cache = cacheDirectory(stateDirectory);
  const isInUserFolder = userFolder !== null && stateDirectory.startsWith(`${userFolder}/`);
  return {
    hide: [...hiddenFromCommands(stateDirectory), ...prepare(userFolder)],
    show: [runsDirectory(stateDirectory)],
    readOnly: [...(isInUserFolder ? [cache] : prepare(cache)), ...prepare(userConfigDirectory(env))],
  };
}

/** The folder, made if it is missing: the launcher mounts nothing over one that a command could make itself. */
function prepare(folder: string | null): string[] {
  if (folder === null) return [];
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return [folder];
  } catch (error) {
    return errorCode(error) === "EACCES" && isClosedByOthers(folder) ? [] : [folder];
  }
}

/** What another user closed is as much out of reach for commands. What our own closed, a command can open again. */
function isClosedByOthers(folder: string): boolean {
  try {
    return statSync(folder).uid !== process.getuid?.();
  } catch (error) {
    errorCode(error);
    return isClosedByOthers(dirname(folder));
  }
}
