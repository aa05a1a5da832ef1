import { realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { RequestError } from "../model/errors.ts";
import type { Environment } from "../model/environment.ts";
import { requireErrorCode } from "./error-code.ts";
import { findPackageRoot } from "./package-directory.ts";
import { changeTrustFile, readTrustFile, type TrustEntry } from "./trust-file.ts";

/**
 * Whether the contents of this directory (or file) may extend what Drover does. Decisions apply to real paths. A trusted
 * directory covers everything below it, and the nearest decision wins. A path that does not exist is not trusted.
 */
export function isTrusted(directory: string, env: Environment): boolean {
  const realDirectory = tryRealPath(directory);
  if (realDirectory === null) return false;
  const ancestors = listWithAncestors(realDirectory);
  const alwaysTrusted = new Set([...readTrustedPaths(env), findPackageRoot()].map((path) => path && tryRealPath(path)));
  if (ancestors.some((path) => alwaysTrusted.has(path))) return true;
  const { entries } = readTrustFile(env);
  const decision = findNearestDecision(ancestors, entries);
  return decision?.trusted === true && belongsToOwner(realDirectory, decision);
}

/**
 * Whether a file or directory that Drover found by its name is trusted. A symlink must be in a trusted directory too.
 * Otherwise a repository could apply the settings and agents of another project.
 */
export function isEntryTrusted(path: string, env: Environment): boolean {
  if (!isTrusted(path, env)) return false;
  return dirname(tryRealPath(path) ?? path) === tryRealPath(dirname(path)) || isTrusted(dirname(path), env);
}

/** Whether a user already trusted or declined this directory or one above it. If so, Drover does not ask again. */
export function isDecided(directory: string, env: Environment): boolean {
  const realDirectory = tryRealPath(directory);
  if (realDirectory === null) return false;
  return (
    isTrusted(realDirectory, env) ||
    findNearestDecision(listWithAncestors(realDirectory), readTrustFile(env).entries)?.trusted === false
  );
}

/** Records the directory as trusted and returns its real path. */
export function trustDirectory(directory: string, env: Environment, now = new Date()): string {
  return trustPath(requireDirectory(directory), env, now);
}

/** Like `trustDirectory`, for a file or directory given by its real path. */
export function trustPath(path: string, env: Environment, now = new Date()): string {
  const { uid, mode } = statSync(path);
  if (isWorldWritable({ mode })) throw createWorldWritableError(path);
  changeTrustFile(env, (entries) => [
    // Decisions about paths below it would take precedence, so drop them.
    ...entries.filter((entry) => entry.path !== path && !listWithAncestors(entry.path).includes(path)),
    { path, trusted: true, owner: uid, at: now.toISOString() },
  ]);
  return path;
}

/**
 * Revokes trust in the directory and everything below it, even if a directory above stays trusted. Returns its real path.
 */
export function revokeTrust(directory: string, env: Environment, now = new Date()): string {
  // A directory that no longer exists can still be revoked by its recorded path.
  const path = tryRealPath(directory) ?? directory;
  changeTrustFile(env, (entries) => {
    const others = entries.filter((entry) => !listWithAncestors(entry.path).includes(path));
    const isCovered = findNearestDecision(listWithAncestors(path), others)?.trusted === true;
    return isCovered ? [...others, { path, trusted: false, owner: null, at: now.toISOString() }] : others;
  });
  return path;
}

/** Records that the user declined to trust the directory. */
export function declineTrust(directory: string, env: Environment, now = new Date()): void {
  const path = requireDirectory(directory);
  changeTrustFile(env, (entries) => [
    ...entries.filter((entry) => entry.path !== path),
    { path, trusted: false, owner: null, at: now.toISOString() },
  ]);
}

/** All recorded decisions, sorted by path. */
export function listTrusted(env: Environment): TrustEntry[] {
  return [...readTrustFile(env).entries].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Why the trust file is ignored; null if it is valid or does not exist. */
export function getTrustProblem(env: Environment): string | null {
  return readTrustFile(env).problem;
}

/** DROVER_TRUST lists absolute paths separated by colons. A relative path would depend on the working directory. */
function readTrustedPaths(env: Environment): string[] {
  return (env["DROVER_TRUST"] ?? "").split(":").filter((path) => isAbsolute(path));
}

function findNearestDecision(ancestors: readonly string[], entries: readonly TrustEntry[]): TrustEntry | undefined {
  for (const directory of ancestors) {
    const entry = entries.find(({ path }) => path === directory);
    if (entry) return entry;
  }
  return undefined;
}

/**
 * The decision does not cover another user's directory that replaced the trusted one or is below it, nor a directory
 * that every user can write to.
 */
function belongsToOwner(realDirectory: string, { path, owner }: TrustEntry): boolean {
  const ownUid = process.getuid?.() ?? 0;
  for (let directory = realDirectory; ; directory = dirname(directory)) {
    const stats = tryStat(directory);
    if (!stats || isWorldWritable(stats)) return false;
    if (directory === path) return stats.uid === owner;
    if (stats.uid !== owner && stats.uid !== ownUid && stats.uid !== 0) return false;
  }
}

function isWorldWritable({ mode }: Pick<Stats, "mode">): boolean {
  return (mode & 0o002) !== 0;
}

/** The path itself, then each of its parent directories. */
function listWithAncestors(path: string): string[] {
  const all = [path];
  while (dirname(all.at(-1)!) !== all.at(-1)) all.push(dirname(all.at(-1)!));
  return all;
}

/** Returns null if the path does not exist or this user cannot reach it. */
function tryRealPath(path: string): string | null {
  try {
    // The native version returns the canonical spelling on case-insensitive file systems.
    return realpathSync.native(path);
  } catch (error) {
    requireErrorCode(error);
    return null;
  }
}

function tryStat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    requireErrorCode(error);
    return undefined;
  }
}

function requireDirectory(directory: string): string {
  const path = tryRealPath(directory);
  if (path !== null && tryStat(path)?.isDirectory()) return path;
  throw new RequestError({
    code: path === null ? "DROVER-USE-003" : "DROVER-USE-004",
    field: "DIR",
    message: path === null ? `${directory} does not exist.` : `${directory} is not a directory.`,
    next: "Pass the path of an existing directory.",
  });
}

function createWorldWritableError(path: string): RequestError {
  return new RequestError({
    code: "DROVER-TRU-002",
    field: "DIR",
    message: `${path} is writable by every user of this machine, so any of them can change its contents.`,
    next: `Remove that permission first: chmod o-w ${path}`,
  });
}
