import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { requireErrorCode } from "./error-code.ts";
import { getUserConfigDirectory } from "./trust-file.ts";
import type { Environment } from "../model/environment.ts";

/** Gives up on a directory with more entries. Directories of definitions have far fewer. */
const maxEntries = 5000;

/**
 * Whether all files of this directory are older than `since`. Compares ctime, which a program cannot set, so a command
 * that started after `since` cannot have changed a file unnoticed. A link counts as changed, because a command may have
 * changed its target.
 */
export function isUnchangedSince(directory: string, since: number): boolean {
  const pending = [directory];
  for (let checkedEntries = 0; pending.length > 0; checkedEntries += 1) {
    const path = pending.pop()!;
    const stats = tryStat(path);
    if (checkedEntries > maxEntries || stats === null || stats.isSymbolicLink() || stats.ctimeMs >= since) return false;
    if (stats.isDirectory()) pending.push(...readdirSync(path).map((name) => join(path, name)));
  }
  return true;
}

/** Whether this user's trust decisions are older than `since`. */
export function isTrustUnchangedSince(env: Environment, since: number): boolean {
  const directory = getUserConfigDirectory(env);
  if (directory === null || tryStat(directory) === null) return true;
  return isUnchangedSince(realpathSync.native(directory), since);
}

/** Returns null if the path does not exist or cannot be read. */
function tryStat(path: string) {
  try {
    return lstatSync(path);
  } catch (error) {
    requireErrorCode(error);
    return null;
  }
}
