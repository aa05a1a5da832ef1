import type { Connection } from "./connection.ts";
import { toHostError } from "./errors.ts";
import { withRetries } from "./with-retries.ts";

/**
 * Runs one transaction under the write lock, for work that is not a store operation. It commits completely or not at all.
 */
export async function runUnderWriteLock<T>(connection: Connection, waitMs: number, work: () => T): Promise<T> {
  try {
    return await withRetries(() => transact(connection, work), connection.file, waitMs);
  } catch (error) {
    throw toHostError(error, connection.file);
  }
}

/** Synchronous, so that no other transaction can start on the same connection in between. */
function transact<T>(connection: Connection, work: () => T): T {
  connection.sql("begin immediate").run();
  try {
    const result = work();
    connection.sql("commit").run();
    return result;
  } catch (error) {
    rollBack(connection);
    throw error;
  }
}

/** A failed commit leaves the transaction open, unless SQLite has already rolled it back. */
export function rollBack(connection: Connection): void {
  try {
    connection.sql("rollback").run();
  } catch (error) {
    if (!(error instanceof Error && error.message.includes("no transaction is active"))) throw error;
  }
}
