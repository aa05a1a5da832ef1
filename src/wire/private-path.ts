import { lstatSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../model/errors.ts";
import { checkDirectory, type OwnershipProblem, checkOwner } from "../model/ownership.ts";

/**
 * Throws if another user could have created this socket. The socket and its directory must belong to this user or root,
 * and nobody else may write to the directory.
 */
export function assertPrivateSocket(path: string): void {
  const checked = checkPrivatePath(path, "socket");
  if (checked === null || checked.problem === null) return;
  throw new HostError({
    code: "DROVER-API-034",
    field: path,
    message: `The socket ${path} is not used: ${checked.problem.reason}.`,
    next: "Check who created it. A coordinator creates its socket in a directory that only its user can write to.",
  });
}

/** Finds out whether only this user or root can have created a file or socket. Returns null if it does not exist. */
export function checkPrivatePath(path: string, kind: "file" | "socket"): { problem: OwnershipProblem | null } | null {
  const directory = dirname(path);
  const [parent, entry] = [lstat(directory), lstat(path)];
  if (parent === undefined || entry === undefined) return null;
  const isOfKind = kind === "file" ? entry.isFile() : entry.isSocket();
  const otherKind = { reason: `it is a link or not a ${kind}`, next: "Check who created it, and remove it." };
  return { problem: checkDirectory(directory, parent) ?? (isOfKind ? checkOwner(path, entry) : otherKind) };
}

function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // The parent is not a directory or not accessible. Using the path will fail with a better message.
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
