import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";
import { schemaVersion } from "./migrations/version.ts";
import { connect, type Connection, type ConnectionMode } from "./connection.ts";
import { toHostError } from "./errors.ts";
import { createNewerDatabaseError } from "./newer-database.ts";
import { withRetries } from "./with-retries.ts";

/**
 * Number of pages before the WAL is checkpointed. A new process reads the whole WAL, which takes 2 ms at SQLite's default
 * of 1,000 pages. A long-lived process raises it, see ./group-commit.ts.
 */
const walPages = 250;

/** Opens a database and migrates it to the current schema. Refuses a newer one. */
export async function openConnection(file: string, mode: "read" | "write", waitMs: number): Promise<Connection> {
  if (!existsSync(file)) throw createMissingDatabaseError(file);
  let connection: Connection | null = null;
  try {
    connection = connect(file, mode === "write" ? "write" : chooseReadingMode(file));
    const opened = connection;
    const version = await withRetries(() => readVersion(opened), file, waitMs);
    if (version > schemaVersion) throw createNewerDatabaseError(file, version);
    if (version < schemaVersion) {
      connection.close();
      connection = await openMigrated(file, mode, waitMs);
    }
    return connection;
  } catch (error) {
    connection?.close();
    throw toHostError(error, file);
  }
}

/** The first read of the file. It fails if the file is damaged or another process is recovering the WAL. */
function readVersion(connection: Connection): number {
  connection.exec(`pragma synchronous = full; pragma cache_size = -8000; pragma wal_autocheckpoint = ${walPages}`);
  return Number(connection.sql("pragma user_version").get()?.["user_version"]);
}

async function openMigrated(file: string, mode: "read" | "write", waitMs: number): Promise<Connection> {
  const { migrate } = await import("./migrations/migrate.ts");
  const connection = connect(file, "write");
  try {
    await migrate(connection, waitMs);
  } catch (error) {
    connection.close();
    throw error;
  }
  if (mode === "write") return connection;
  connection.close();
  return openConnection(file, mode, waitMs);
}

function chooseReadingMode(file: string): ConnectionMode {
  if (existsSync(`${file}-wal`)) return "read";
  try {
    accessSync(dirname(file), constants.W_OK);
    return "read";
  } catch {
    // The directory is not writable and there is no WAL, so nobody changes the file while we read.
    return "immutable";
  }
}

function createMissingDatabaseError(file: string): HostError {
  return new HostError({
    code: "DROVER-STA-006",
    message: `There is no database at ${file}.`,
    field: file,
    next: 'Nothing has been recorded here yet: run something first (drover exec "echo hello"), or choose another directory with DROVER_STATE_DIR.',
  });
}
