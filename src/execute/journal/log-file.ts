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
  /** Reads complete lines from an offset: about `maxBytes`, but at least one line unless the file ends there. */
  read(offset: number, maxBytes: number): { lines: string[]; end: number };
  /** Removes an incomplete line that a crash left at the end. */
  truncate(size: number): void;
  close(): void;
  remove(): Promise<void>;
}

export function openLogFile(path: string, { create }: { create: boolean }): LogFile {
  const fd = open(path, create);
  let size = fstatSync(fd).size;
  let pendingSyncs = 0;
  let state: "open" | "closing" | "closed" = "open";
  // Defers closing while a sync is in progress, because the descriptor could be reused for another file.
  const close = (): void => {
    if (state === "closed") return;
    state = pendingSyncs > 0 ? "closing" : "closed";
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
        throw undoAppend(fd, size, path, cause);
      }
      size += bytes.length;
    },
    sync() {
      return new Promise((resolve, reject) => {
        pendingSyncs++;
        fdatasync(fd, (cause) => {
          pendingSyncs--;
          if (state === "closing" && pendingSyncs === 0) close();
          if (cause === null) resolve();
          else reject(logError(path, cause));
        });
      });
    },
    read(offset, maxBytes) {
      return readLines(fd, offset, size, maxBytes);
    },
    truncate(end) {
      ftruncateSync(fd, end);
      size = end;
    },
    close,
    async remove() {
      close();
      // Asynchronous, because it can take a millisecond on a busy disk.
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
    throw logError(path, cause);
  }
}

/** Creates the directory, which does not exist before its first log. */
function openInNewDirectory(path: string, flags: number): number {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, flags, 0o600);
  } catch (cause) {
    throw logError(path, cause);
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

/** Removes a line that a full disk truncated, so that the next line does not continue it. */
function undoAppend(fd: number, size: number, path: string, cause: unknown): HostError {
  try {
    ftruncateSync(fd, size);
  } catch (truncateError) {
    return logError(path, new AggregateError([cause, truncateError], describeError(cause)));
  }
  return logError(path, cause);
}

function readLines(fd: number, offset: number, size: number, maxBytes: number): { lines: string[]; end: number } {
  for (let length = Math.min(maxBytes, size - offset); length > 0; length = Math.min(length * 2, size - offset)) {
    const bytes = Buffer.allocUnsafe(length);
    const chunk = bytes.subarray(0, readSync(fd, bytes, 0, length, offset));
    const end = chunk.lastIndexOf(0x0a) + 1;
    if (end > 0) return { lines: chunk.toString("utf8", 0, end - 1).split("\n"), end: offset + end };
    if (length >= size - offset) break;
  }
  return { lines: [], end: offset };
}

function logError(path: string, cause: unknown): HostError {
  const isDiskFull = cause instanceof Error && "code" in cause && (cause.code === "ENOSPC" || cause.code === "EDQUOT");
  return new HostError({
    code: isDiskFull ? "DROVER-STA-002" : "DROVER-STA-001",
    message: isDiskFull
      ? `No space left for the run's log ${path}.`
      : `The run's log ${path} cannot be written (${describeError(cause)}).`,
    next: isDiskFull
      ? "Free space on the runner's disk, then retry the run."
      : "Make sure that the runner can write there, then retry the run.",
    cause,
  });
}

function describeError(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
