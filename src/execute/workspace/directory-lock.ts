import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { NewId } from "../../model/ids.ts";
import { sleep } from "../port/backoff.ts";
import type { LockContents } from "./lock-contents.ts";
import { createLockFile, temporarySuffix } from "./lock-file.ts";

type Owner = LockContents["owner"];

export interface LockOptions {
  /** The directory of the lock files. All runners that lock against each other share it. */
  locksDirectory: string;
  owner: Owner;
  isAlive: (owner: Owner) => boolean;
  /** Ids must sort by time: the older lock file wins. */
  newId: NewId;
  /** A lock file whose owner cannot be checked is stale if it was not refreshed for this long. One minute by default. */
  staleMs?: number;
}

export interface DirectoryLock {
  release(): Promise<void>;
}

const pauseMs = 100;
const defaultStaleMs = 60_000;

/**
 * Locks a directory for one run, together with everything above and below it. Returns null if the signal is aborted.
 *
 * Each run first creates its lock file and then reads the others, so of two concurrent runs at least one sees the
 * other. The run with the older file keeps it and waits; the younger removes its file and retries. A run that sees no
 * other file for the directory has the lock.
 */
export async function lockDirectory(
  directory: string,
  run_id: string,
  options: LockOptions,
  signal: AbortSignal,
  onWaiting: (holder: { directory: string; run_id: string }) => void,
): Promise<DirectoryLock | null> {
  await mkdir(options.locksDirectory, { recursive: true, mode: 0o700 });
  const name = `${options.newId()}.json`;
  const text = JSON.stringify({ directory, run_id, owner: options.owner } satisfies LockContents);
  const file = createLockFile(join(options.locksDirectory, name), text, (options.staleMs ?? defaultStaleMs) / 6);
  try {
    if (await waitForTurn()) return { release: file.remove };
  } catch (error) {
    await file.remove();
    throw error;
  }
  await file.remove();
  return null;

  async function waitForTurn(): Promise<boolean> {
    let isReported = false;
    let hasFile = false;
    while (!signal.aborted) {
      if (!hasFile) await file.create();
      hasFile = true;
      const conflicts = await findConflicts(directory, name, options);
      if (signal.aborted) break;
      if (conflicts.length === 0) return true;
      const holder = conflicts.find(({ contents }) => contents !== null)?.contents;
      if (!isReported && holder) {
        onWaiting(holder);
        isReported = true;
      }
      if (conflicts.some((conflict) => conflict.name < name)) {
        await file.remove();
        hasFile = false;
      }
      await sleep(pauseMs, signal);
    }
    return false;
  }
}

/** Also removes stale lock files. An unreadable one is returned with null, and assumed to cover this directory. */
async function findConflicts(
  directory: string,
  ownName: string,
  options: LockOptions,
): Promise<{ name: string; contents: LockContents | null }[]> {
  const conflicts: { name: string; contents: LockContents | null }[] = [];
  for (const name of (await readdir(options.locksDirectory)).sort()) {
    const isTemporary = name.endsWith(temporarySuffix);
    if (name === ownName || !(isTemporary || name.endsWith(".json"))) continue;
    const path = join(options.locksDirectory, name);
    const entry = await readLockFile(path);
    if (entry === null || (entry.contents && !isTemporary && !overlaps(entry.contents.directory, directory))) continue;
    if (!isAlive(isTemporary ? null : entry.contents, entry.ageMs, options)) await rm(path, { force: true });
    else if (!isTemporary) conflicts.push({ name, contents: entry.contents });
  }
  return conflicts;
}

/** Checks the owner's process if it is on this host, else the age of the file, which a live owner refreshes. */
function isAlive(
  contents: LockContents | null,
  ageMs: number,
  { owner, isAlive: isOwnerAlive, staleMs = defaultStaleMs }: LockOptions,
) {
  if (contents !== null && contents.owner.host === owner.host) return isOwnerAlive(contents.owner);
  return ageMs <= staleMs && (contents === null || isOwnerAlive(contents.owner));
}

/** Returns null if the file was removed since it was listed. `contents` is null if a system crash left the file empty or damaged. */
async function readLockFile(path: string): Promise<{ contents: LockContents | null; ageMs: number } | null> {
  try {
    const ageMs = Date.now() - (await stat(path)).mtimeMs;
    return { contents: await parseContents(await readFile(path, "utf8")), ageMs };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** Loads the schema only if there is another lock file to read. */
async function parseContents(text: string): Promise<LockContents | null> {
  const { lockContentsSchema } = await import("./lock-contents.ts");
  try {
    return lockContentsSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function overlaps(first: string, second: string): boolean {
  return isWithin(first, second) || isWithin(second, first);
}

export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}
