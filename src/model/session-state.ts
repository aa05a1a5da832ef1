export const sessionFileTypes = ["file", "executable", "link", "folder"] as const;

export interface SessionFile {
  /** Relative to the work directory, with slashes. */
  path: string;
  type: (typeof sessionFileTypes)[number];
  /** Of a link its target; none of a folder. */
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
  /** The runner that asks, or one with the same state directory, saved it: the work directory there is as new. */
  here: boolean;
}

/** Of a state in one save, and of everything in one save. */
export const maxStateBytes = 8 * 1024 * 1024;
export const maxSaveBytes = 16 * 1024 * 1024;
/** Of a state that is saved in parts. */
export const maxWholeStateBytes = 64 * 1024 * 1024;
/** Of all files of a session. */
export const maxSessionFileBytes = 50 * 1024 * 1024;

/** A part of a state is kept among the session's files, by a name that no work path has: its own SHA-256. */
export function isPartPath(path: string): boolean {
  return /^\/[0-9a-f]{64}$/.test(path);
}

/** Below the work directory, by names that lead nowhere else. */
export function isWorkPath(path: string): boolean {
  if (!path.isWellFormed() || path.includes("\0") || Buffer.byteLength(path) > 4096) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}
