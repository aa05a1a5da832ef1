import { HostError } from "../../model/errors.ts";
import { connect, schema } from "./connection.ts";
import { toHostError, getPublicName } from "./errors.ts";
import { migrate, schemaVersion } from "./migrations/migrate.ts";

/** Requires an existing record, and migrates it if it is older. For commands that only read: they never create one. */
export async function requireRecord(url: string): Promise<void> {
  const version = await readVersion(url);
  if (version === null) throw createMissingRecordError(url);
  if (version !== schemaVersion) await migrate(url);
}

async function readVersion(url: string): Promise<number | null> {
  try {
    const connection = await connect(url);
    try {
      const [schemaRow] = await connection.exec(`select to_regclass('${schema}.schema_version') is not null as there`);
      if (schemaRow?.["there"] !== 1) return null;
      const [row] = await connection.exec("select version from schema_version");
      return row === undefined ? null : Number(row["version"]);
    } finally {
      connection.end();
    }
  } catch (error) {
    throw toHostError(error, url);
  }
}

function createMissingRecordError(url: string): HostError {
  return new HostError({
    code: "DROVER-STA-006",
    message: `There is no record in ${getPublicName(url)}.`,
    field: "DATABASE_URL",
    next: "Nothing has been recorded there yet: start a coordinator on it, or set DATABASE_URL to another address.",
  });
}
