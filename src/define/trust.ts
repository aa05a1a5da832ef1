import { realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { RequestError } from "../model/errors.ts";
import { errorCode } from "./error-code.ts";
import { findPackageRoot } from "./package-directory.ts";
import { changeTrustFile, readTrustFile, type TrustEntry } from "./trust-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * May what lies in this folder (or file) widen what Drover does? By real path: a trusted folder covers what is below it,
 * and of two decisions the nearer one counts. A folder that does not exist is not trusted.
 */
export function isTrusted(folder: string, env: Environment): boolean {
  const real = realPath(folder);
  if (real === null) return false;
  const above = withAncestors(real);
  const named = new Set([...namedFolders(env), findPackageRoot()].map((each) => each && realPath(each)));
  if (above.some((each) => named.has(each))) return true;
  const { entries } = readTrustFile(env);
  const decision = nearestDecision(above, entries);
  return decision?.trusted === true && belongsToOwner(real, decision);
}

/** Was this folder, or one above it, decided on already? Then nobody is asked again. */
export function isDecided(folder: string, env: Environment): boolean {
  const real = realPath(folder);
  if (real === null) return false;
  return isTrusted(real, env) || nearestDecision(withAncestors(real), readTrustFile(env).entries)?.trusted === false;
}

/** Records the folder as trusted and returns its real path. */
export function trustDirectory(folder: string, env: Environment, now = new Date()): string {
  return trustPath(existingDirectory(folder), env, now);
}

/** The same of a single file or folder, by its real path. */
export function trustPath(path: string, env: Environment, now = new Date()): string {
  const { uid, mode } = statSync(path);
  if (isOpenToAll({ mode })) throw openToAll(path);
  changeTrustFile(env, (entries) => [
    // what was decided about folders below it would still count
    ...entries.filter((entry) => entry.path !== path && !withAncestors(entry.path).includes(path)),
    { path, trusted: true, owner: uid, at: now.toISOString() },
  ]);
  return path;
}

/** Ends the trust of the folder and of all below it, also where a folder above it stays trusted. Returns its real path. */
export function revokeTrust(folder: string, env: Environment, now = new Date()): string {
  // a folder that is gone can still be revoked, by the path that was recorded
  const path = realPath(folder) ?? folder;
  changeTrustFile(env, (entries) => {
    const others = entries.filter((entry) => !withAncestors(entry.path).includes(path));
    const covered = nearestDecision(withAncestors(path), others)?.trusted === true;
    return covered ? [...others, { path, trusted: false, owner: null, at: now.toISOString() }] : others;
  });
  return path;
}

/** Records that somebody was asked about the folder and said no. */
export function declineTrust(folder: string, env: Environment, now = new Date()): void {
  const path = existingDirectory(folder);
  changeTrustFile(env, (entries) => [
    ...entries.filter((entry) => entry.path !== path),
    { path, trusted: false, owner: null, at: now.toISOString() },
  ]);
}

/** Every decision that was recorded, by path. */
export function listTrusted(env: Environment): TrustEntry[] {
  return [...readTrustFile(env).entries].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Why the file of decisions is ignored; null where it is sound or there is none. */
export function trustProblem(env: Environment): string | null {
  return readTrustFile(env).problem;
}

/** DROVER_TRUST: absolute folders, separated by colons. A relative one would mean another folder at each call. */
function namedFolders(env: Environment): string[] {
  return (env["DROVER_TRUST"] ?? "").split(":").filter((each) => isAbsolute(each));
}

function nearestDecision(above: readonly string[], entries: readonly TrustEntry[]): TrustEntry | undefined {
  for (const folder of above) {
    const found = entries.find(({ path }) => path === folder);
    if (found) return found;
  }
  return undefined;
}

/**
 * Somebody else's folder in the place of the one that was trusted, or below it, has nobody's trust; neither has one
 * that everybody can write to.
 */
function belongsToOwner(real: string, { path, owner }: TrustEntry): boolean {
  const us = process.getuid?.() ?? 0;
  for (let folder = real; ; folder = dirname(folder)) {
    const found = tryStat(folder);
    if (!found || isOpenToAll(found)) return false;
    if (folder === path) return found.uid === owner;
    if (found.uid !== owner && found.uid !== us && found.uid !== 0) return false;
  }
}

function isOpenToAll({ mode }: Pick<Stats, "mode">): boolean {
  return (mode & 0o002) !== 0;
}

/** The path itself, then each folder around it. */
function withAncestors(path: string): string[] {
  const all = [path];
  while (dirname(all.at(-1)!) !== all.at(-1)) all.push(dirname(all.at(-1)!));
  return all;
}

/** null where there is nothing, or nothing that this user can reach. */
function realPath(path: string): string | null {
  try {
    // asks the system, which knows the one spelling of a name where several are the same
    return realpathSync.native(path);
  } catch (error) {
    errorCode(error);
    return null;
  }
}

function tryStat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    errorCode(error);
    return undefined;
  }
}

function existingDirectory(folder: string): string {
  const path = realPath(folder);
  if (path !== null && tryStat(path)?.isDirectory()) return path;
  throw new RequestError({
    code: path === null ? "DROVER-USE-003" : "DROVER-USE-004",
    field: "DIR",
    message: path === null ? `There is no ${folder}.` : `${folder} is not a folder.`,
    next: "Name a folder that exists.",
  });
}

function openToAll(path: string): RequestError {
  return new RequestError({
    code: "DROVER-TRU-002",
    field: "DIR",
    message: `${path} is writable by every user of this machine: what lies there can be anybody's.`,
    next: `Close it first: chmod o-w ${path}`,
  });
}
