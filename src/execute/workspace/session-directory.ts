import { dirname, join } from "node:path";
import type { Invocation } from "../../model/executor.ts";
import type { FailureReason } from "../../model/states.ts";
import { type HeldDirectory, whileHeld } from "./held-directory.ts";
import {
  holdPrivateDirectory,
  isPrivateDirectory,
  makePrivateDirectory,
  removeNonDirectories,
} from "./private-directory.ts";
import { removeTree } from "./remove-tree.ts";
import { copyDirectory } from "./copy-directory.ts";
import { markSession, type SessionOwner } from "./session-marks.ts";
import { isSessionName } from "./session-name.ts";

export type SessionDirectoryResult =
  | { ok: true; path: string }
  | { ok: false; reason: FailureReason; message: string }
  /** The run was stopped while it copied or waited for a copy. */
  | { ok: false; reason: null };

export interface SessionDirectoryOptions {
  root: string;
  owner: SessionOwner;
  /** The name of the directory in messages. */
  label: string;
  signal: AbortSignal;
  /** Set to restore the saved files if the directory is missing, or `always`. */
  restore?: { always: boolean; restoreContents(directory: HeldDirectory): Promise<void> };
}

/** Opens a session's directory under `root`: a new one for a start, the same for a resume, a copy for a fork. */
export async function openSessionDirectory(
  { mode: requestedMode, continues, session_id, forked_from }: Invocation,
  { root, owner, label, signal, restore }: SessionDirectoryOptions,
): Promise<SessionDirectoryResult> {
  if (!isSessionName(session_id)) return invalidSessionId(session_id);
  const base = dirname(root);
  removeNonDirectories(base, root);
  const path = join(root, session_id);
  const mode = continues ? "resume" : requestedMode;
  const sourcePath =
    mode === "fork" && forked_from !== null && isSessionName(forked_from) ? join(root, forked_from) : path;
  if (restore && (restore.always || !isPrivateDirectory(base, sourcePath))) {
    await markSession(root, session_id, owner);
    await removeTree(base, path);
    await whileHeld(holdPrivateDirectory(base, path), (directory) => restore.restoreContents(directory));
    return { ok: true, path };
  }
  if (mode === "resume") {
    if (!(await waitForCopies(path, signal))) return { ok: false, reason: null };
    if (!isPrivateDirectory(base, path)) return missingDirectory(label, session_id);
    // An older version of Drover may have created the directory without a mark.
    await markSession(root, session_id, owner);
    return { ok: true, path };
  }
  if (mode === "start") {
    await markSession(root, session_id, owner);
    // A start must not see files of an earlier attempt.
    await removeTree(base, path);
    makePrivateDirectory(base, path);
    return { ok: true, path };
  }
  if (forked_from === null || !isSessionName(forked_from)) return invalidSessionId(String(forked_from));
  const parentPath = join(root, forked_from);
  return trackCopy(parentPath, async () => {
    if (!isPrivateDirectory(base, parentPath)) return missingDirectory(label, forked_from);
    await markSession(root, session_id, owner);
    return (await copyDirectory(base, parentPath, path, signal)) ? { ok: true, path } : { ok: false, reason: null };
  });
}

/** Copies in progress, by directory. One runner has a session, so only this process can copy it. */
const copies = new Map<string, Set<Promise<unknown>>>();

async function trackCopy<T>(path: string, work: () => Promise<T>): Promise<T> {
  const copy = work();
  const pendingCopies = copies.get(path) ?? new Set();
  copies.set(path, pendingCopies.add(copy));
  try {
    return await copy;
  } finally {
    pendingCopies.delete(copy);
    if (pendingCopies.size === 0) copies.delete(path);
  }
}

/** A fork must not see later changes, so the next run of its parent waits until the copy is done. */
async function waitForCopies(path: string, signal: AbortSignal): Promise<boolean> {
  const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  for (
    let pendingCopies = copies.get(path);
    pendingCopies !== undefined && !signal.aborted;
    pendingCopies = copies.get(path)
  )
    await Promise.race([Promise.allSettled(pendingCopies), stopped]);
  return !signal.aborted;
}

/** Opens one directory for all commands of a session. The first one creates it. */
export async function openSharedDirectory(
  { session_id }: Invocation,
  { root, owner }: Pick<SessionDirectoryOptions, "root" | "owner">,
): Promise<SessionDirectoryResult> {
  if (!isSessionName(session_id)) return invalidSessionId(session_id);
  const path = join(root, session_id);
  await markSession(root, session_id, owner);
  makePrivateDirectory(dirname(root), path);
  return { ok: true, path };
}

function invalidSessionId(id: string): SessionDirectoryResult {
  return { ok: false, reason: "refused", message: `${JSON.stringify(id)} is not a valid session id.` };
}

function missingDirectory(label: string, session_id: string): SessionDirectoryResult {
  return {
    ok: false,
    reason: "session_not_found",
    message: `The ${label} of session ${session_id} is not on this runner: it was removed, or the session ran elsewhere. Start a new session.`,
  };
}
