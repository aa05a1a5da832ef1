import { accessSync, type BigIntStats, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { hostFault } from "./faults.ts";

/** The files of a database that this process has open, by which it can tell that others no longer see the same ones. */
export interface HeldFiles {
  /** What became of them; null while their names still lead to them. A few microseconds. */
  fault(): HostError | null;
  /** The result of the last check, by any caller. After a loss nothing may be acknowledged that the rescue has not copied. */
  known(): HostError | null;
  /** The same as `fault`, and whether they can be written. */
  writeFault(): unknown;
}

/** SQLite makes the last two when it first reads, and keeps them while anybody has the database open. */
const ends = ["", "-wal", "-shm"] as const;
/** A database has a header of so many bytes, however little is in it. */
const leastBytes = 100n;

/**
 * To be called right after the database was opened and read. An open file lives on without its name: everything that is
 * written to it then is lost with this process, although each commit succeeds.
 */
export function holdFiles(file: string): HeldFiles {
  const held = new Map<string, BigIntStats>();
  for (const end of ends) learn(end, statOf(file + end));
  let known: HostError | null = null;
  const fault = (): HostError | null => (known = look());
  const look = (): HostError | null => {
    for (const end of ends) {
      const [before, now] = [held.get(end), statOf(file + end)];
      if (before === undefined) learn(end, now);
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

  function learn(end: string, found: BigIntStats | undefined): void {
    if (found !== undefined) held.set(end, found);
  }
}

function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // its directory became something else, or may not be entered: it cannot be reached by its name
    return undefined;
  }
}

export function isLost(fault: unknown): fault is HostError {
  return fault instanceof HostError && fault.code === "DROVER-STA-012";
}

function lost(path: string, what: string): HostError {
  return new HostError({
    code: "DROVER-STA-012",
    message: `${path} ${what} while Drover had it open. Nothing is stored any more.`,
    field: path,
    next: "Put it back as it was, or restart Drover on a restored record.",
  });
}
