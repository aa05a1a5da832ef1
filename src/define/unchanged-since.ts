import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "./error-code.ts";
import { userConfigDirectory } from "./trust-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A folder of definitions has far fewer. */
const mostEntries = 5000;

/**
 * Whether nothing in this folder has been made or changed since then. By ctime, which no program can set: a command that
 * runs since then cannot have written what is settled.
 */
export function isUnchangedSince(folder: string, since: number): boolean {
  const pending = [folder];
  for (let seen = 0; pending.length > 0; seen += 1) {
    const path = pending.pop()!;
    const found = tryStat(path);
    if (seen > mostEntries || found === null || found.ctimeMs >= since) return false;
    if (found.isDirectory()) pending.push(...readdirSync(path).map((name) => join(path, name)));
  }
  return true;
}

/** The same of this user's decisions on trust. */
export function isTrustUnchangedSince(env: Environment, since: number): boolean {
  const folder = userConfigDirectory(env);
  return folder === null || tryStat(folder) === null || isUnchangedSince(folder, since);
}

/** null where there is nothing. */
function tryStat(path: string) {
  try {
    return lstatSync(path);
  } catch (error) {
    errorCode(error);
    return null;
  }
}
