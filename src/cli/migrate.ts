import { dirname } from "node:path";
import { readDatabaseSettings, isDatabaseUrl } from "../define/database-settings.ts";
import { RequestError } from "../model/errors.ts";
import { auditKeyFile, blobsDirectory, recordDirectory } from "../model/state-layout.ts";
import { readKey } from "../record/audit/key.ts";
import type { CopyProgress } from "../record/copy/copy-record.ts";
import { type MigrateResult, migrateRecord } from "../record/copy/migrate-record.ts";
import { openStore } from "../record/open.ts";
import { getPublicName } from "../record/postgres/errors.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";

export const migrateCommand: CommandSpec = {
  name: "migrate",
  summary: "copy the record of this state directory to an empty PostgreSQL database",
  placeholders: "--to URL",
  arity: [0, 0],
  examples: [
    ["drover migrate --to postgres://drover@db/drover", "all or nothing; put the password in PGPASSWORD or ~/.pgpass"],
  ],
  options: {
    to: {
      placeholder: "URL",
      description:
        "the database, as postgres://user@host:port/database; other users can see a password in this address",
    },
  },
  run: migrate,
};

async function migrate(input: CommandInput): Promise<number> {
  const url = readUrl(input);
  const directory = await requireStoppedRecord(input);
  // This fails if the record is missing, damaged or newer than this version of Drover, and upgrades an older record.
  await (await openStore({ directory, now: () => new Date() })).close();
  checkSecret(input, url, directory);
  const startedAt = performance.now();
  const migrateResult = await migrateRecord({
    directory,
    url,
    now: new Date(),
    onProgress: createProgressReporter(input),
  });
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  write(
    1,
    input.options["json"]
      ? toJson(migrateResult, directory, url, seconds)
      : describe(migrateResult, directory, url, seconds),
  );
  return 0;
}

function readUrl(input: CommandInput): string {
  const url = readText(input.options, "to");
  if (url === undefined) throw usageError("migrate needs --to URL.", "migrate", "--to");
  if (!isDatabaseUrl(url))
    throw usageError(
      "--to must be the address of a PostgreSQL database: postgres://user@host:port/database.",
      "migrate",
      "--to",
    );
  return url;
}

/** A running coordinator would keep writing to the old record after the copy. */
async function requireStoppedRecord(input: CommandInput): Promise<string> {
  const { DROVER_API_URL: _, ...env } = input.env;
  const { client, project } = await connect({ ...input, env });
  const { stateDirectory } = project.locations;
  if (client === null) return recordDirectory(stateDirectory);
  throw new RequestError({
    code: "DROVER-USE-001",
    field: stateDirectory,
    message: `A coordinator is serving ${stateDirectory} at ${client.url}. Anything it writes after the copy would be lost.`,
    next: "Stop it, then migrate. Runners can keep running: they store what they cannot deliver.",
  });
}

function checkSecret({ env }: CommandInput, url: string, directory: string): void {
  if (!env["DROVER_SECRET"] && !env["DROVER_SECRET_FILE"]) return;
  const secret = readDatabaseSettings({ ...env, DATABASE_URL: url })?.secret;
  const key = readKey(directory);
  if (secret !== undefined && key !== null && Buffer.compare(secret, key) === 0) return;
  const field = env["DROVER_SECRET_FILE"] ? "DROVER_SECRET_FILE" : "DROVER_SECRET";
  throw new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} is not the key that seals the record in ${directory}, so its audit chain could not be continued.`,
    next: `Unset it, or use the record's own key: DROVER_SECRET_FILE=${auditKeyFile(directory)}`,
  });
}

/** Prints at most one progress line per second. */
function createProgressReporter({ options }: CommandInput): (progress: CopyProgress | { step: "verifying" }) => void {
  let lastPrintedAt = performance.now();
  return (progress) => {
    if (options["quiet"] || performance.now() - lastPrintedAt < 1000) return;
    lastPrintedAt = performance.now();
    const subject =
      "item" in progress ? `${progress.item}, ${progress.done.toLocaleString("en")} so far` : "the audit chain";
    write(2, `${progress.step} ${subject}\n`);
  };
}

function toJson({ copied, audit }: MigrateResult, directory: string, url: string, seconds: number): string {
  return toJsonLine({ state_directory: dirname(directory), database: getPublicName(url), seconds, ...copied, audit });
}

function describe({ copied, audit }: MigrateResult, directory: string, url: string, seconds: number): string {
  const { rows, contents, bytes, missing } = copied;
  const formatCount = (number: number | undefined): string => (number ?? 0).toLocaleString("en");
  const totalRows = Object.values(rows).reduce((sum, number) => sum + number, 0);
  const chain = audit.ok ? "intact" : `with an earlier fault: ${audit.first_bad?.what}`;
  return [
    `Copied ${directory} to ${getPublicName(url)} in ${seconds} s and compared every row: all ${formatCount(totalRows)} rows match.`,
    `  ${formatCount(rows["runs"])} runs, ${formatCount(rows["events"])} events, ${formatCount(rows["sessions"])} sessions, ${formatCount(rows["files"])} files (${formatCount(contents)} distinct, ${formatCount(bytes)} bytes)`,
    ...(missing === 0
      ? []
      : [`  the contents of ${formatCount(missing)} files were already missing from ${blobsDirectory(directory)}`]),
    `  ${formatCount(audit.rows)} audit rows, ${chain}`,
    `head ${audit.head}`,
    "",
    "From now on, start every coordinator with",
    "  DATABASE_URL=(the address above, with its password)",
    `  DROVER_SECRET_FILE=${auditKeyFile(directory)}   (or a copy that only its user can read)`,
    `The record in ${directory} is unchanged. With DATABASE_URL set, only drover exec still uses it:`,
    "drover exec needs no network and keeps recording there.",
    "",
  ].join("\n");
}
