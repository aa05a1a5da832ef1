import { coordinatorLockFile } from "../model/state-layout.ts";
import { openDatabase } from "./sqlite/driver.ts";
import { hostFault, isBusy } from "./sqlite/faults.ts";
import { createDirectory } from "./state-directory.ts";

export interface PlaceLock {
  release(): void;
}

/**
 * One process at a time holds the coordinator lock of a state directory; null where another one does. The kernel keeps the
 * lock (SQLite's lock on an empty file), so exactly one of several that ask in the same moment gets it, and a process
 * that is killed loses it at once.
 */
export function lockCoordinator(record: string): PlaceLock | null {
  const file = coordinatorLockFile(record);
  try {
    createDirectory(record);
    const database = openDatabase(file, { timeout: 0 });
    try {
      database.exec("begin exclusive");
    } catch (fault) {
      database.close();
      if (isBusy(fault)) return null;
      throw fault;
    }
    return { release: () => database.close() };
  } catch (fault) {
    throw hostFault(fault, file);
  }
}
