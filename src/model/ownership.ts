/** As much of a file's status as says who can have made or changed it. */
export interface FileOwnership {
  uid: number;
  mode: number;
  isDirectory(): boolean;
}

export interface OwnershipFault {
  why: string;
  next: string;
}

/** null where this user made it, or root, who can do everything anyway. */
export function ownerFault(path: string, { uid }: Pick<FileOwnership, "uid">): OwnershipFault | null {
  if (uid === 0 || uid === process.getuid?.()) return null;
  return { why: `${path} belongs to another user (uid ${uid})`, next: useOwnState };
}

/** null where only this user and root can put anything into the folder. */
export function directoryFault(folder: string, found: FileOwnership): OwnershipFault | null {
  if (!found.isDirectory()) return { why: `${folder} is a link or no folder`, next: useOwnState };
  const fault = ownerFault(folder, found);
  if (fault !== null || (found.mode & 0o022) === 0) return fault;
  return { why: `other users can write to ${folder}`, next: `Take their rights away: chmod go-w ${folder}` };
}

/** null where this user or root made the file, for nobody else to read. */
export function secretFault(file: string, found: FileOwnership): OwnershipFault | null {
  const fault = ownerFault(file, found);
  if (fault !== null || process.platform === "win32" || (found.mode & 0o077) === 0) return fault;
  return { why: "other users can read it", next: `Take their rights away: chmod 600 ${file}` };
}

const useOwnState = "Run this as that user, or set DROVER_STATE_DIR to a state directory of your own.";
