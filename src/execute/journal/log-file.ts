import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";

/** An append-only file of lines. People tail it, and a restarted runner reads it. */
export interface LogFile {
  readonly path: string;
  readonly size: number;
  /** Writes the whole line or nothing. Throws a HostError if the disk fails. */
  append(line: string): void;
  /** Resolves when everything appended so far is on disk. */
  sync(): Promise<void>;
  /** Complete lines from an offset: about `maxBytes`, but at least one if there is one. */
  read(from: number, maxBytes: number): { lines: string[]; end: number };
  /** Removes an incomplete line that a crash left at the end. */
  truncate(size: number): void;
  close(): void;
  remove(): Promise<void>;
}

export function openLogFile(path: string, { create }: { create: boolean }): LogFile {
  const fd = open(path, create);
  let size = fstatSync(fd).size;
  let syncing = 0;
  let state: "open" | "closing" | "closed" = "open";
  // waits for a sync in progress: the descriptor number could be reused for another file
  const close = (): void => {
    if (state === "closed") return;
    state = syncing > 0 ? "closing" : "closed";
    if (state === "closed") closeSync(fd);
  };
  return {
    path,
    get size() {
      return size;
    },
    append(line) {
      const bytes = Buffer.from(`${line}\n`, "utf8");
      try {
        for (let written = 0; written < bytes.length;) written += writeSync(fd, bytes, written);
      } catch (cause) {
        throw restore(fd, size, path, cause);
      }
      size += bytes.length;
    },
    sync() {
      return new Promise((resolve, reject) => {
        syncing++;
        fdatasync(fd, (cause) => {
          syncing--;
          if (state === "closing" && syncing === 0) close();
          if (cause === null) resolve();
          else reject(logFault(path, cause));
        });
      });
    },
    read(from, maxBytes) {
      return readLines(fd, from, size, maxBytes);
    },
    truncate(end) {
      ftruncateSync(fd, end);
      size = end;
    },
    close,
    async remove() {
      close();
      // asynchronous, because it can take a millisecond on a busy disk
      await unlink(path).catch((cause: unknown) => {
        if (!isMissing(cause)) throw cause;
      });
    },
  };
}

function open(path: string, create: boolean): number {
  const flags = constants.O_RDWR | constants.O_APPEND | (create ? constants.O_CREAT | constants.O_EXCL : 0);
  try {
    return openSync(path, flags, 0o600);
  } catch (cause) {
    if (create && isMissing(cause)) return openInNewDirectory(path, flags);
    throw logFault(path, cause);
  }
}

/** The directory is created with the first log in it. */
function openInNewDirectory(path: string, flags: number): number {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, flags, 0o600);
  } catch (cause) {
    throw logFault(path, cause);
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

/** Removes a line that a full disk cut short, so that the next line does not continue it. */
function restore(fd: number, size: number, path: string, cause: unknown): HostError {
  try {
    ftruncateSync(fd, size);
  } catch (second) {
    return logFault(path, new AggregateError([cause, second], messageOf(cause)));
  }
  return logFault(path, cause);
}

function readLines(fd: number, from: number, size: number, maxBytes: number): { lines: string[]; end: number } {
  for (let length = Math.min(maxBytes, size - from); length > 0; length = Math.min(length * 2, size - from)) {
    const bytes = Buffer.allocUnsafe(length);
    const got = bytes.subarray(0, readSync(fd, bytes, 0, length, from));
    const end = got.lastIndexOf(0x0a) + 1;
    if (end > 0) return { lines: got.toString("utf8", 0, end - 1).split("\n"), end: from + end };
    if (length >= size - from) break;
  }
  return { lines: [], end: from };
}

function logFault(path: string, cause: unknown): HostError {
  const full = cause instanceof Error && "code" in cause && (cause.code === "ENOSPC" || cause.code === "EDQUOT");
  return new HostError({
    code: full ? "DROVER-STA-002" : "DROVER-STA-001",
    message: full
      ? `No space left for the run's log ${path}.`
      : `The run's log ${path} cannot be written (${messageOf(cause)}).`,
    next: full
      ? "Free space on the runner's disk, then run it again."
      : "Make sure that the runner can write there, then run it again.",
    cause,
  });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
