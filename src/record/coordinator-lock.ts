import { coordinatorLockFile } from "../model/state-layout.ts";
import { openDatabase } from "./sqlite/driver.ts";
import { toHostError, isBusy } from "./sqlite/errors.ts";
import { createRecordDirectory } from "./state-directory.ts";

export interface CoordinatorLock {
  release(): void;
}

/**
 * Takes the coordinator lock of a record directory, or returns null if another process holds it. The kernel keeps the lock
 * (SQLite's lock on an empty file), so exactly one of several simultaneous callers gets it, and a killed process
 * releases it at once.
 */
export function lockCoordinator(directory: string): CoordinatorLock | null {
  const file = coordinatorLockFile(directory);
  try {
    createRecordDirectory(directory);
    const database = openDatabase(file, { timeout: 0 });
    try {
      database.exec("begin exclusive");
    } catch (error) {
      database.close();
      if (isBusy(error)) return null;
      throw error;
    }
    return { release: () => database.close() };
  } catch (error) {
    throw toHostError(error, file);
  }
}
