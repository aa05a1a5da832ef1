import type { Readable } from "node:stream";
import type { RunnerIdentity } from "./dispatch-ops.ts";

/** An artifact a run leaves, as it is listed. Its schema is apart, so that a cold `exec` never loads one. */
export interface StoredFile {
  path: string;
  size: number;
  sha256: string;
  media_type: string;
}

const hashShape = /^[0-9a-f]{64}$/;

export function isSha256(text: string): boolean {
  return hashShape.test(text);
}

/** Below the work directory, by names that lead nowhere else and hide nowhere. */
export function isFilePath(path: string): boolean {
  if (!path.isWellFormed() || Buffer.byteLength(path) > 1024 || unprintable.test(path)) return false;
  return path.split("/").every((part) => part !== "" && !part.startsWith("."));
}

// oxlint-disable-next-line no-control-regex -- these are what it is about
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Contents by their SHA-256. What is not whole is never seen under its hash. */
export interface Blobs {
  put(
    content: AsyncIterable<Uint8Array>,
    announced: { sha256: string; size: number },
    signal: AbortSignal,
  ): Promise<"stored" | "mismatch">;
  open(sha256: string): Promise<{ size: number; stream: Readable } | null>;
}

/**
 * This attempt has brought these bytes: from here on its `file` events may name them. Without it an event
 * is a line of the log and no file, so that nobody gets at contents by knowing their hash.
 */
export interface AddUpload {
  op: "add_upload";
  run_id: string;
  attempt: number;
  sha256: string;
  size: number;
  runner: RunnerIdentity;
  /** Before the bytes come: refused as it would be then, and nothing is stored. */
  only_check?: true;
}

export type FileResult = { ok: true; op: "add_upload" } | { ok: false; conflict: "fenced" | "not_found" };

export interface FileReads {
  /** Of the run's last attempt, by path. */
  files(run_id: string): Promise<StoredFile[]>;
  file(run_id: string, path: string): Promise<StoredFile | null>;
}
