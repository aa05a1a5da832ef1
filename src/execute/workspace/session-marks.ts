import { createHash } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isName } from "./session-name.ts";

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
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, session_id), "", { mode: 0o600 });
}

export async function markedSessions(root: string, owner: SessionOwner): Promise<string[]> {
  try {
    return (await readdir(folderOf(root, owner))).filter(isName);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** When the folder is gone. */
export async function unmarkSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  await rm(join(folderOf(root, owner), session_id), { force: true });
}

/** The id comes from the coordinator, and does not become a path. */
function folderOf(root: string, { store_id }: SessionOwner): string {
  return join(`${root}.owners`, createHash("sha256").update(store_id).digest("hex").slice(0, 32));
}
