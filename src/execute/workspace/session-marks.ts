import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makePrivateDirectory, removeNonDirectories } from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { isSessionName } from "./session-name.ts";

/** The record that a session belongs to. */
export interface SessionOwner {
  store_id: string;
}

/**
 * Marks a session's directory as belonging to a record. The sweep removes only marked directories, because other records
 * may use the same state directory. Marks are written before the directory is created, and beside `root`, so that they
 * are not among the run's files.
 */
export async function markSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const directory = marksDirectory(root, owner);
  makePrivateDirectory(dirname(root), directory);
  const mark = join(directory, session_id);
  const stats = await lstat(mark).catch(() => null); // if this fails, writeFile reports why
  if (stats && !stats.isFile()) await removeTree(dirname(root), mark);
  await writeFile(mark, "", { mode: 0o600, flag: constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW });
}

export async function listMarkedSessions(root: string, owner: SessionOwner): Promise<string[]> {
  const directory = marksDirectory(root, owner);
  removeNonDirectories(dirname(root), directory);
  try {
    return (await readdir(directory)).filter(isSessionName);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** Call this after the session's directory was removed. */
export async function unmarkSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const directory = marksDirectory(root, owner);
  removeNonDirectories(dirname(root), directory);
  await rm(join(directory, session_id), { force: true });
}

/** Hashes the id, which comes from the coordinator and must not become a path. */
function marksDirectory(root: string, { store_id }: SessionOwner): string {
  return join(`${root}.owners`, createHash("sha256").update(store_id).digest("hex").slice(0, 32));
}
