import { createHash } from "node:crypto";
import { closeSync, constants, lstatSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { whileHeld } from "./held-directory.ts";
import { holdPrivateDirectory, listPrivateDirectory, removeNonDirectories } from "./private-directory.ts";
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
  const directory = toMarksDirectory(root, owner);
  await whileHeld(holdPrivateDirectory(dirname(root), directory), async (marks) => {
    const mark = marks.at(Buffer.from(session_id));
    if (isMark(mark)) return;
    await removeTree(dirname(root), join(directory, session_id));
    closeSync(openSync(mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
  });
}

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

function isMark(path: Buffer): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

export async function listMarkedSessions(root: string, owner: SessionOwner): Promise<string[]> {
  const directory = toMarksDirectory(root, owner);
  removeNonDirectories(dirname(root), directory);
  return (await listPrivateDirectory(dirname(root), directory)).filter(isSessionName);
}

/** Call this after the session's directory was removed. */
export async function unmarkSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const directory = toMarksDirectory(root, owner);
  removeNonDirectories(dirname(root), directory);
  await removeTree(dirname(root), join(directory, session_id));
}

/** Hashes the id, which comes from the coordinator and must not become a path. */
function toMarksDirectory(root: string, { store_id }: SessionOwner): string {
  return join(`${root}.owners`, createHash("sha256").update(store_id).digest("hex").slice(0, 32));
}
