import { dirname } from "node:path";
import { readDatabaseSettings, isDatabaseUrl } from "../define/database-settings.ts";
import { RequestError } from "../model/errors.ts";
import { auditKeyFile, blobsDirectory, recordDirectory } from "../model/state-layout.ts";
import { readKey } from "../record/audit/key.ts";
import type { CopyProgress } from "../record/copy/copy-record.ts";
import { type Migrated, migrateRecord } from "../record/copy/migrate-record.ts";
import { openStore } from "../record/open.ts";
import { publicName } from "../record/postgres/faults.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";

export const migrateCommand: CommandSpec = {
  name: "migrate",
  summary: "the record of this state directory into an empty PostgreSQL database",
  takes: "--to URL",
  arity: [0, 0],
  examples: [
    ["drover migrate --to postgres://drover@db/drover", "all or nothing; the password is in PGPASSWORD or ~/.pgpass"],
  ],
  options: {
    to: {
      value: "URL",
      about: "the database, as postgres://user@host:port/database; a password in it can be seen by others",
    },
  },
  run: migrate,
};

async function migrate(input: CommandInput): Promise<number> {
  const url = readUrl(input);
  const directory = await stoppedDirectory(input);
  // says what is wrong with a record that is missing, damaged or newer, and brings an older one up to date
  await (await openStore({ directory, now: () => new Date() })).close();
  refuseAnotherSecret(input, url, directory);
  const since = performance.now();
  const migrated = await migrateRecord({ directory, url, now: new Date(), onProgress: progressReporter(input) });
  const seconds = Math.round((performance.now() - since) / 100) / 10;
  write(
    1,
    input.options["json"] ? inJson(migrated, directory, url, seconds) : inWords(migrated, directory, url, seconds),
  );
  return 0;
}

function readUrl(input: CommandInput): string {
  const url = text(input.options, "to");
  if (url === undefined) throw usage("migrate needs --to URL.", "migrate", "--to");
  if (!isDatabaseUrl(url))
    throw usage("--to is no address of a PostgreSQL database: postgres://user@host:port/database.", "migrate", "--to");
  return url;
}

/** One that serves would go on writing where nobody reads any more. */
async function stoppedDirectory(input: CommandInput): Promise<string> {
  const { DROVER_API_URL: _, ...env } = input.env;
  const { client, local } = await connect({ ...input, env });
  const { stateDirectory } = local.places;
  if (client === null) return recordDirectory(stateDirectory);
  throw new RequestError({
    code: "DROVER-USE-001",
    field: stateDirectory,
    message: `A coordinator serves ${stateDirectory} (${client.url}): what it wrote after the copy would be lost.`,
    next: "Stop it, then migrate. Runners may go on: they keep what they cannot deliver.",
  });
}

function refuseAnotherSecret({ env }: CommandInput, url: string, directory: string): void {
  if (!env["DROVER_SECRET"] && !env["DROVER_SECRET_FILE"]) return;
  const given = readDatabaseSettings({ ...env, DATABASE_URL: url })?.secret;
  const key = readKey(directory);
  if (given !== undefined && key !== null && Buffer.compare(given, key) === 0) return;
  const field = env["DROVER_SECRET_FILE"] ? "DROVER_SECRET_FILE" : "DROVER_SECRET";
  throw new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} is not the key that the record in ${directory} is sealed with: its chain could not go on.`,
    next: `Unset it, or give the record's own: DROVER_SECRET_FILE=${auditKeyFile(directory)}`,
  });
}

/** At most a line each second, and one for each table that takes longer. */
function progressReporter({ options }: CommandInput): (progress: CopyProgress | { doing: "verifying" }) => void {
  let last = performance.now();
  return (progress) => {
    if (options["quiet"] || performance.now() - last < 1000) return;
    last = performance.now();
    const what =
      "what" in progress ? `${progress.what}, ${progress.done.toLocaleString("en")} so far` : "the audit chain";
    write(2, `${progress.doing} ${what}\n`);
  };
}

function inJson({ copied, audit }: Migrated, directory: string, url: string, seconds: number): string {
  return jsonLine({ state_directory: dirname(directory), database: publicName(url), seconds, ...copied, audit });
}

function inWords({ copied, audit }: Migrated, directory: string, url: string, seconds: number): string {
  const { rows, contents, bytes, missing } = copied;
  const count = (number: number | undefined): string => (number ?? 0).toLocaleString("en");
  const all = Object.values(rows).reduce((sum, number) => sum + number, 0);
  const chain = audit.ok ? "whole" : `which tell of an earlier fault: ${audit.first_bad?.what}`;
  return [
    `Copied ${directory} to ${publicName(url)} in ${seconds} s, and compared row by row: ${count(all)} rows are the same.`,
    `  ${count(rows["runs"])} runs, ${count(rows["events"])} events, ${count(rows["sessions"])} sessions, ${count(rows["files"])} files (${count(contents)} contents, ${count(bytes)} bytes)`,
    ...(missing === 0 ? [] : [`  ${count(missing)} contents were missing in ${blobsDirectory(directory)} already`]),
    `  ${count(audit.rows)} audit rows, ${chain}`,
    `head ${audit.head}`,
    "",
    "From now on give every coordinator",
    "  DATABASE_URL=(the address above, with its password)",
    `  DROVER_SECRET_FILE=${auditKeyFile(directory)}   (or a copy of it, readable by its user alone)`,
    `With DATABASE_URL set, no coordinator and no command but drover exec uses the record in ${directory}, which is as it was.`,
    "drover exec needs no network, and goes on recording there.",
    "",
  ].join("\n");
}
