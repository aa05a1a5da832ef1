import type { Engine } from "../engine.ts";
import type { Work } from "../query.ts";
import { rollBack, underWriteLock } from "./write-lock.ts";
import { carryOut } from "./carry-out.ts";
import type { Connection } from "./connection.ts";
import { hostFault } from "./faults.ts";
import { openConnection } from "./open-connection.ts";
import { patiently } from "./patience.ts";

export interface SqliteEngine extends Engine {
  readonly connection: Connection;
  close(): void;
}

export async function openSqliteEngine(file: string, mode: "read" | "write", waitMs: number): Promise<SqliteEngine> {
  const connection = await openConnection(file, mode, waitMs);
  return {
    kind: "sqlite",
    name: file,
    connection,
    read: (work) => reading(connection, waitMs, () => carryOut(connection, work())),
    snapshot: (work) => reading(connection, waitMs, () => asOfOneMoment(connection, work())),
    write: (work) => underWriteLock(connection, waitMs, () => carryOut(connection, work())),
    close: connection.close,
  };
}

/** A reader is refused while another process repairs the WAL of one that died, and asks again. */
async function reading<T>(connection: Connection, waitMs: number, read: () => T): Promise<T> {
  try {
    return await patiently(read, connection.file, waitMs);
  } catch (fault) {
    throw hostFault(fault, connection.file);
  }
}

function asOfOneMoment<T>(connection: Connection, work: Work<T>): T {
  connection.sql("begin").run();
  try {
    return carryOut(connection, work);
  } finally {
    rollBack(connection);
  }
}
