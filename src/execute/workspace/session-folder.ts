import { constants } from "node:fs";
import { cp, lstat, mkdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Invocation } from "../../model/executor.ts";
import type { FailureReason } from "../../model/states.ts";
import { removeTree } from "./remove-tree.ts";

export type SessionFolder = { ok: true; path: string } | { ok: false; reason: FailureReason; message: string };

/**
 * The folder that a session has under `root`: new for a start, the same for a resume, a copy of its parent's for a
 * fork. `what` names it to people.
 */
export async function sessionFolder(
  root: string,
  { mode, session_id, forked_from, executor_session_id }: Invocation,
  what: string,
): Promise<SessionFolder> {
  if (!isName(session_id)) return refused(session_id);
  const path = join(root, session_id);
  const exists = await isFolder(path);
  // what an earlier attempt left is not this one's, unless it goes on where that one was parked
  if (mode === "start") {
    if (exists && executor_session_id === null) await removeTree(path);
    await mkdir(path, { recursive: true, mode: 0o700 });
    return { ok: true, path };
  }
  if (mode === "resume") return exists ? { ok: true, path } : missing(what, session_id);
  if (forked_from === null || !isName(forked_from)) return refused(String(forked_from));
  const parent = join(root, forked_from);
  if (!(await isFolder(parent))) return missing(what, forked_from);
  await copyFolder(parent, path);
  return { ok: true, path };
}

/** Moved into its place when it is whole. */
async function copyFolder(from: string, to: string): Promise<void> {
  const aside = `${to}.copy`;
  await removeTree(aside);
  await removeTree(to);
  await cp(from, aside, {
    recursive: true,
    verbatimSymlinks: true,
    mode: constants.COPYFILE_FICLONE,
    // sockets, pipes and devices are of their moment
    filter: async (path) => {
      const seen = await lstat(path);
      return seen.isFile() || seen.isDirectory() || seen.isSymbolicLink();
    },
  });
  await rename(aside, to);
}

/** A session's id becomes a path: from whoever it comes, it stays a name. */
function isName(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id);
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

function refused(id: string): SessionFolder {
  return { ok: false, reason: "refused", message: `${JSON.stringify(id)} is no session's id.` };
}

function missing(what: string, session_id: string): SessionFolder {
  return {
    ok: false,
    reason: "session_not_found",
    message: `The ${what} of session ${session_id} is not on this runner: it was removed, or the session ran elsewhere. Start a new session.`,
  };
}
