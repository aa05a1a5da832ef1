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

/** One file of lines that only grows: what a person tails, and what a restarted runner reads. */
export interface LogFile {
  readonly path: string;
  readonly size: number;
  /** All of the line or nothing; throws a HostError where the disk does not take it. */
  append(line: string): void;
  /** Resolves when everything appended is on the disk itself. */
  sync(): Promise<void>;
  /** Whole lines from an offset on: about `maxBytes`, at least one where there is one. */
  read(from: number, maxBytes: number): { lines: string[]; end: number };
  /** What a crash left behind the last whole line. */
  cutTo(size: number): void;
  close(): void;
  remove(): Promise<void>;
}

export function openLogFile(path: string, { create }: { create: boolean }): LogFile {
  const fd = open(path, create);
  let size = fstatSync(fd).size;
  let syncing = 0;
  let wanted: "open" | "closing" | "closed" = "open";
  // not under a running sync: the number could be another file's by then
  const close = (): void => {
    if (wanted === "closed") return;
    wanted = syncing > 0 ? "closing" : "closed";
    if (wanted === "closed") closeSync(fd);
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
          if (wanted === "closing" && syncing === 0) close();
          if (cause === null) resolve();
          else reject(logFault(path, cause));
        });
      });
    },
    read(from, maxBytes) {
      return readLines(fd, from, size, maxBytes);
    },
    cutTo(end) {
      ftruncateSync(fd, end);
      size = end;
    },
    close,
    async remove() {
      close();
      // not in the event loop's time: a busy disk takes a millisecond for it
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
    if (create && isMissing(cause)) return openInNewFolder(path, flags);
    throw logFault(path, cause);
  }
}

/** The folder comes with the first log in it. */
function openInNewFolder(path: string, flags: number): number {
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

/** A line cut in the middle by a full disk must not stay: the next one would join it. */
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
      : "See that the runner may write there, then run it again.",
    cause,
  });
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
