import { accessSync, type BigIntStats, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { toHostError } from "./errors.ts";

/** Detects when the open files of a database are deleted, moved or replaced. */
export interface DatabaseFiles {
  /** Returns an error if a file no longer exists under its name, otherwise null. Takes a few microseconds. */
  check(): HostError | null;
  /** The result of the last check. While it is an error, no commit may be acknowledged. */
  lastError(): HostError | null;
  /** Like `check`, and also checks whether the files are writable. */
  checkWritable(): unknown;
}

/**
 * SQLite creates the WAL and the shared memory file on the first read, and keeps them while any process has the database
 * open.
 */
const suffixes = ["", "-wal", "-shm"] as const;
/** Size of a database header. No database is smaller. */
const minBytes = 100n;

/**
 * Call this right after opening the database and reading from it. A deleted file stays usable while it is open: writes
 * still succeed, but are lost when this process ends.
 */
export function trackDatabaseFiles(file: string): DatabaseFiles {
  const statsBySuffix = new Map<string, BigIntStats>();
  for (const suffix of suffixes) remember(suffix, tryStat(file + suffix));
  let lastError: HostError | null = null;
  const check = (): HostError | null => (lastError = findLoss());
  const findLoss = (): HostError | null => {
    for (const suffix of suffixes) {
      const [original, current] = [statsBySuffix.get(suffix), tryStat(file + suffix)];
      if (original === undefined) remember(suffix, current);
      else if (current === undefined) return createFileLostError(file + suffix, "was deleted or moved");
      else if (current.ino !== original.ino || current.dev !== original.dev)
        return createFileLostError(file + suffix, "was replaced");
      else if (suffix === "" && current.size < minBytes) return createFileLostError(file, "was emptied");
    }
    return null;
  };
  return {
    check,
    lastError: () => lastError,
    checkWritable() {
      const loss = check();
      if (loss !== null) return loss;
      try {
        for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK);
        return null;
      } catch (error) {
        return toHostError(error, file);
      }
    },
  };

  function remember(suffix: string, stats: BigIntStats | undefined): void {
    if (stats !== undefined) statsBySuffix.set(suffix, stats);
  }
}

function tryStat(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // The directory was replaced or is not accessible, so the file counts as missing.
    return undefined;
  }
}

export function isLost(error: unknown): error is HostError {
  return error instanceof HostError && error.code === "DROVER-STA-012";
}

function createFileLostError(path: string, what: string): HostError {
  return new HostError({
    code: "DROVER-STA-012",
    message: `${path} ${what} while Drover had it open. Nothing can be stored any more.`,
    field: path,
    next: "Put the file back unchanged, or restore the record from a backup and restart Drover.",
  });
}
