import { accessSync, type BigIntStats, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { hostFault } from "./errors.ts";

/** The open files of a database. Detects that others no longer see the same ones. */
export interface HeldFiles {
  /** Checks the files; null while their names still lead to them. Takes a few microseconds. */
  fault(): HostError | null;
  /** The result of the last check, by any caller. After a loss, nothing may be acknowledged that the rescue has not copied. */
  known(): HostError | null;
  /** Like `fault`, and also checks whether the files are writable. */
  writeFault(): unknown;
}

/** SQLite creates the last two on the first read, and keeps them while the database is open anywhere. */
const ends = ["", "-wal", "-shm"] as const;
/** Size of a database header: no database is smaller. */
const leastBytes = 100n;

/**
 * Call it right after the database was opened and read. An open file survives without its name: writes to it still succeed,
 * but are lost with this process.
 */
export function holdFiles(file: string): HeldFiles {
  const held = new Map<string, BigIntStats>();
  for (const end of ends) remember(end, statOf(file + end));
  let known: HostError | null = null;
  const fault = (): HostError | null => (known = check());
  const check = (): HostError | null => {
    for (const end of ends) {
      const [before, now] = [held.get(end), statOf(file + end)];
      if (before === undefined) remember(end, now);
      else if (now === undefined) return lost(file + end, "was deleted or moved");
      else if (now.ino !== before.ino || now.dev !== before.dev) return lost(file + end, "was replaced");
      else if (end === "" && now.size < leastBytes) return lost(file, "was emptied");
    }
    return null;
  };
  return {
    fault,
    known: () => known,
    writeFault() {
      const gone = fault();
      if (gone !== null) return gone;
      try {
        for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK);
        return null;
      } catch (error) {
        return hostFault(error, file);
      }
    },
  };

  function remember(end: string, found: BigIntStats | undefined): void {
    if (found !== undefined) held.set(end, found);
  }
}

function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // Its directory was replaced or is not accessible, so the name no longer leads to the file.
    return undefined;
  }
}

export function isLost(fault: unknown): fault is HostError {
  return fault instanceof HostError && fault.code === "DROVER-STA-012";
}

function lost(path: string, what: string): HostError {
  return new HostError({
    code: "DROVER-STA-012",
    message: `${path} ${what} while Drover had it open. Nothing can be stored any more.`,
    field: path,
    next: "Put it back as it was, or restart Drover on a restored record.",
  });
}
