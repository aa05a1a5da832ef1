import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "./error-code.ts";
import { userConfigDirectory } from "./trust-file.ts";
import type { Environment } from "../model/environment.ts";

/** A directory of definitions has far fewer. */
const maxEntries = 5000;

/**
 * Whether nothing in this directory was created or changed since then. Compares ctime, which no program can set, so a
 * command started since then cannot have written an unchanged file.
 */
export function isUnchangedSince(directory: string, since: number): boolean {
  const pending = [directory];
  for (let seen = 0; pending.length > 0; seen += 1) {
    const path = pending.pop()!;
    const found = tryStat(path);
    if (seen > maxEntries || found === null || found.ctimeMs >= since) return false;
    if (found.isDirectory()) pending.push(...readdirSync(path).map((name) => join(path, name)));
  }
  return true;
}

/** Whether this user's trust decisions are unchanged since then. */
export function isTrustUnchangedSince(env: Environment, since: number): boolean {
  const directory = userConfigDirectory(env);
  return directory === null || tryStat(directory) === null || isUnchangedSince(directory, since);
}

/** Returns null if the path does not exist. */
function tryStat(path: string) {
  try {
    return lstatSync(path);
  } catch (error) {
    errorCode(error);
    return null;
  }
}
