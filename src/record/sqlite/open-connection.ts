import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { schemaVersion } from "./migrations/version.ts";
import { connect, type Connection, type ConnectionMode } from "./connection.ts";
import { hostFault } from "./faults.ts";
import { newerDatabase } from "./newer-database.ts";
import { patiently } from "./patience.ts";

/**
 * Pages after which the WAL is written back. A process that starts reads it whole, which takes 2 ms
 * at SQLite's 1,000 pages; a process that stays raises this, see ./group-commit.ts.
 */
const walPages = 250;

/** A connection to a database whose schema is this Drover's: brought up to date, or refused. */
export async function openConnection(file: string, mode: "read" | "write", waitMs: number): Promise<Connection> {
  if (!existsSync(file)) throw missingDatabase(file);
  let connection: Connection | null = null;
  try {
    connection = connect(file, mode === "write" ? "write" : readingMode(file));
    const version = await patiently(versionWith(connection), file, waitMs);
    if (version > schemaVersion) throw newerDatabase(file, version);
    if (version < schemaVersion) {
      connection.close();
      connection = await migrated(file, mode, waitMs);
    }
    return connection;
  } catch (fault) {
    connection?.close();
    throw hostFault(fault, file);
  }
}

/** The first thing read of the file: damage shows here, and so does another process that repairs a WAL. */
function versionWith(connection: Connection): () => number {
  return () => {
    connection.exec(`pragma synchronous = full; pragma cache_size = -8000; pragma wal_autocheckpoint = ${walPages}`);
    return Number(connection.sql("pragma user_version").get()?.["user_version"]);
  };
}

async function migrated(file: string, mode: "read" | "write", waitMs: number): Promise<Connection> {
  const { migrate } = await import("./migrations/migrate.ts");
  const connection = connect(file, "write");
  try {
    await migrate(connection, waitMs);
  } catch (fault) {
    connection.close();
    throw fault;
  }
  if (mode === "write") return connection;
  connection.close();
  return openConnection(file, mode, waitMs);
}

function readingMode(file: string): ConnectionMode {
  if (existsSync(`${file}-wal`)) return "read";
  try {
    accessSync(dirname(file), constants.W_OK);
    return "read";
  } catch {
    // Not ours to write: then nobody changes it under us either, as there is no WAL.
    return "immutable";
  }
}

function missingDatabase(file: string): HostError {
  return new HostError({
    code: "DROVER-STA-006",
    message: `There is no database at ${file}.`,
    field: file,
    next: 'Nothing was recorded here yet: run something first (drover exec "echo hello"), or name another place with DROVER_STATE_DIR.',
  });
}
