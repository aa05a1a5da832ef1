/** The part of a file's status that determines who can have created or changed it. */
export interface FileOwnership {
  uid: number;
  mode: number;
  isDirectory(): boolean;
}

export interface OwnershipFault {
  why: string;
  next: string;
}

/** Returns null if the file belongs to this user or to root, who has full access anyway. */
export function ownerFault(path: string, { uid }: Pick<FileOwnership, "uid">): OwnershipFault | null {
  if (uid === 0 || uid === process.getuid?.()) return null;
  return { why: `${path} belongs to another user (uid ${uid})`, next: useOwnState };
}

/** Returns null if only this user and root can write to the directory. */
export function directoryFault(directory: string, stats: FileOwnership): OwnershipFault | null {
  if (!stats.isDirectory()) return { why: `${directory} is not a directory`, next: useOwnState };
  const fault = ownerFault(directory, stats);
  if (fault !== null || (stats.mode & 0o022) === 0) return fault;
  return { why: `other users can write to ${directory}`, next: `Remove their access: chmod go-w ${directory}` };
}

/** Returns null if the file belongs to this user or root and other users cannot read it. */
export function secretFault(file: string, stats: FileOwnership): OwnershipFault | null {
  const fault = ownerFault(file, stats);
  if (fault !== null || process.platform === "win32" || (stats.mode & 0o077) === 0) return fault;
  return { why: "other users can read it", next: `Remove their access: chmod 600 ${file}` };
}

const useOwnState = "Run this as that user, or set DROVER_STATE_DIR to a state directory of your own.";
