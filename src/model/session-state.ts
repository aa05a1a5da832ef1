export const sessionFileTypes = ["file", "executable", "link", "folder"] as const;

export interface SessionFile {
  /** Relative to the work directory, with slashes. */
  path: string;
  type: (typeof sessionFileTypes)[number];
  /** The content of a file, or the target of a link. Empty for a directory. */
  bytes: Uint8Array;
}

export interface RemovedFile {
  path: string;
  type: null;
}

export interface SessionState {
  format: string;
  bytes: Uint8Array;
  portable: boolean;
  /** Saved by the requesting runner or one with the same state directory, so the local work directory is current. */
  here: boolean;
}

/** Limits for the state in one save, and for one save in total. */
export const maxStateBytes = 8 * 1024 * 1024;
export const maxSaveBytes = 16 * 1024 * 1024;
/** Limit for a state that is saved in parts. */
export const maxWholeStateBytes = 64 * 1024 * 1024;
/** Limit for all files of a session together. */
export const maxSessionFileBytes = 50 * 1024 * 1024;

/** Limit for the number of files that a runner saves from a work directory. */
export const maxSessionFiles = 20_000;
/**
 * Limit for the number of files in one save, and in the record. A save can replace or remove every file, and there are also
 * parts of the state.
 */
export const maxStoredFiles = 2 * (maxSessionFiles + 1000);

/** Parts of a state are stored among the session's files as `/` and their SHA-256, which is not a valid work path. */
export function isPartPath(path: string): boolean {
  return /^\/[0-9a-f]{64}$/.test(path);
}

/** Accepts relative paths that stay below the work directory. */
export function isWorkPath(path: string): boolean {
  if (!path.isWellFormed() || path.includes("\0") || Buffer.byteLength(path) > 4096) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}
