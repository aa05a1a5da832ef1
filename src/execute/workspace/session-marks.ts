import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makePrivateDirectory, removeNonDirectories } from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { isSessionName } from "./session-name.ts";

/** The record that knows a session. Every runner of the state directory keeps the session's folder for it. */
export interface SessionOwner {
  store_id: string;
}

/**
 * Written beside `root`, where a run does not find it among its files, and before the session's folder is made: a folder
 * without a mark of its record is never removed, even if others use the same state directory.
 */
export async function markSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const folder = folderOf(root, owner);
  makePrivateDirectory(dirname(root), folder);
  const mark = join(folder, session_id);
  const found = await lstat(mark).catch(() => null); // what cannot be seen cannot be written either
  if (found && !found.isFile()) await removeTree(mark);
  await writeFile(mark, "", { mode: 0o600, flag: constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW });
}

export async function markedSessions(root: string, owner: SessionOwner): Promise<string[]> {
  const folder = folderOf(root, owner);
  removeNonDirectories(dirname(root), folder);
  try {
    return (await readdir(folder)).filter(isSessionName);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** When the folder is gone. */
export async function unmarkSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const folder = folderOf(root, owner);
  removeNonDirectories(dirname(root), folder);
  await rm(join(folder, session_id), { force: true });
}

/** The id comes from the coordinator, and does not become a path. */
function folderOf(root: string, { store_id }: SessionOwner): string {
  return join(`${root}.owners`, createHash("sha256").update(store_id).digest("hex").slice(0, 32));
}
