/** The part of a file's status that determines who can have created or changed it. */
export interface FileOwnership {
  uid: number;
  mode: number;
  isDirectory(): boolean;
}

export interface OwnershipProblem {
  reason: string;
  next: string;
}

/** Returns null if the file belongs to this user or to root, who has full access anyway. */
export function checkOwner(path: string, { uid }: Pick<FileOwnership, "uid">): OwnershipProblem | null {
  if (uid === 0 || uid === process.getuid?.()) return null;
  return { reason: `${path} belongs to another user (uid ${uid})`, next: ownStateAdvice };
}

/** Returns null if only this user and root can write to the directory. */
export function checkDirectory(directory: string, stats: FileOwnership): OwnershipProblem | null {
  if (!stats.isDirectory()) return { reason: `${directory} is not a directory`, next: otherStateAdvice };
  const fault = checkOwner(directory, stats);
  if (fault !== null || (stats.mode & 0o022) === 0) return fault;
  return { reason: `other users can write to ${directory}`, next: `Remove their access: chmod go-w ${directory}` };
}

/** Returns null if the file belongs to this user or root and other users cannot read it. */
export function checkSecretFile(file: string, stats: FileOwnership): OwnershipProblem | null {
  const fault = checkOwner(file, stats);
  if (fault !== null || process.platform === "win32" || (stats.mode & 0o077) === 0) return fault;
  return { reason: "other users can read it", next: `Remove their access: chmod 600 ${file}` };
}

const ownStateAdvice = "Run Drover as its owner, or set DROVER_STATE_DIR to a state directory of your own.";
const otherStateAdvice = "Move it away, or set DROVER_STATE_DIR to another state directory.";
