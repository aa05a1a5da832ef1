import { createHash } from "node:crypto";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isName } from "./session-name.ts";

/** For whom a runner keeps a session's folder: which record knows the session, and as whom the runner serves it. */
export interface SessionOwner {
  store_id: string;
  runner_id: string;
}

/**
 * Written beside `root`, where a run does not find it among its files, and before the session's folder is made: a folder
 * without a mark of one's own is never removed, whoever else uses the same state directory.
 */
export async function markSession(root: string, session_id: string, owner: SessionOwner): Promise<void> {
  const folder = folderOf(root, owner);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, session_id), JSON.stringify(owner), { mode: 0o600 });
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

/** Both come from the coordinator, and neither becomes a path. */
function folderOf(root: string, { store_id, runner_id }: SessionOwner): string {
  const name = createHash("sha256")
    .update(JSON.stringify([store_id, runner_id]))
    .digest("hex")
    .slice(0, 32);
  return join(`${root}.owners`, name);
}
