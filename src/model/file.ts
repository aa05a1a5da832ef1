import type { Readable } from "node:stream";
import type { RunnerIdentity } from "./dispatch-ops.ts";

/** A file that a run produced. Its schema is in another file, so that a cold `exec` never loads zod. */
export interface StoredFile {
  path: string;
  size: number;
  sha256: string;
  media_type: string;
}

const sha256Pattern = /^[0-9a-f]{64}$/;

export function isSha256(text: string): boolean {
  return sha256Pattern.test(text);
}

/** Accepts relative paths below the work directory without hidden names. */
export function isFilePath(path: string): boolean {
  if (!path.isWellFormed() || Buffer.byteLength(path) > 1024 || unprintablePattern.test(path)) return false;
  return path.split("/").every((part) => part !== "" && !part.startsWith("."));
}

// oxlint-disable-next-line no-control-regex -- it matches control characters
const unprintablePattern = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** File contents, stored under their SHA-256. Incomplete contents are never visible. */
export interface Blobs {
  put(
    content: AsyncIterable<Uint8Array>,
    announced: { sha256: string; size: number },
    signal: AbortSignal,
  ): Promise<"stored" | "mismatch">;
  open(sha256: string): Promise<{ size: number; stream: Readable } | null>;
}

/**
 * Records that this attempt uploaded these bytes, so that its `file` events may refer to them. A `file` event without an
 * upload adds no file to the run; otherwise a runner that knows the hash of a file could read it.
 */
export interface AddUpload {
  op: "add_upload";
  run_id: string;
  attempt: number;
  sha256: string;
  size: number;
  runner: RunnerIdentity;
  /** Only checks whether the upload would be accepted, before the bytes are sent. Stores nothing. */
  only_check?: true;
}

export type FileResult = { ok: true; op: "add_upload" } | { ok: false; conflict: "fenced" | "not_found" };

export interface FileReads {
  /** The files of the run's last attempt, sorted by path. */
  files(run_id: string): Promise<StoredFile[]>;
  file(run_id: string, path: string): Promise<StoredFile | null>;
}
