import { lstatSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../model/errors.ts";
import { directoryFault, type OwnershipFault, ownerFault } from "../model/ownership.ts";

/**
 * A socket needs no proof where nobody else can have put it there: its folder and the socket itself are this user's or
 * root's, and nobody else may write to the folder.
 */
export function assertPrivateSocket(path: string): void {
  const found = checkPrivatePath(path, "socket");
  if (found === null || found.fault === null) return;
  throw new HostError({
    code: "DROVER-API-034",
    field: path,
    message: `The socket ${path} is not used: ${found.fault.why}.`,
    next: "Check who made it. A coordinator makes its socket in a folder that only its user can write to.",
  });
}

/** What keeps a file or socket from being one that only this user or root can have put there. null: there is nothing. */
export function checkPrivatePath(path: string, kind: "file" | "socket"): { fault: OwnershipFault | null } | null {
  const folder = dirname(path);
  const [around, itself] = [look(folder), look(path)];
  if (around === undefined || itself === undefined) return null;
  const isOfKind = kind === "file" ? itself.isFile() : itself.isSocket();
  const otherKind = { why: `it is a link or no ${kind}`, next: "Check who made it, and remove it." };
  return { fault: directoryFault(folder, around) ?? (isOfKind ? ownerFault(path, itself) : otherKind) };
}

function look(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // below something that is no folder, or in one that we may not enter: using it fails too
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
