import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { constants } from "node:os";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { readDatabaseSettings } from "../define/database-settings.ts";
import { findProject } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { auditHeadFile, databaseFile, recordDirectory } from "../model/state-layout.ts";
import { readHead, replaceHeadCopy } from "../record/audit/head.ts";
import { removePartial, writeBackup } from "../record/backup-file.ts";
import { backupRecord } from "../record/backup.ts";
import { getPublicName } from "../record/postgres/errors.ts";
import { restoreRecord } from "../record/restore.ts";
import { replaceTokenFile } from "../serve/token-file.ts";
import { newTokenText } from "../serve/token-text.ts";
import type { ApiClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, usageError } from "./options.ts";
import { findDroverCommand } from "./drover-command.ts";

export const backupCommand: CommandSpec = {
  name: "backup",
  summary: "back up the whole record to one file while Drover keeps running",
  placeholders: "FILE",
  arity: [1, 1],
  examples: [["drover backup drover-2026-01-31.backup", "the file contains the audit key: keep it private"]],
  options: {},
  run: backup,
};

export const restoreCommand: CommandSpec = {
  name: "restore",
  summary: "restore a backup into a state directory or database that has no record yet",
  placeholders: "FILE",
  arity: [1, 1],
  examples: [
    [
      "DROVER_STATE_DIR=/srv/drover drover restore drover-2026-01-31.backup",
      "into an empty state directory; the backup is verified first",
    ],
    [
      "DATABASE_URL=postgres://db/drover drover restore drover-2026-01-31.backup",
      "into PostgreSQL, from either engine",
    ],
  ],
  options: {
    "keep-tokens": { description: "keep the tokens of the backup valid, including tokens revoked after it was made" },
  },
  run: restore,
};

async function backup(input: CommandInput): Promise<number> {
  const file = resolve(input.cwd, input.positionals[0]!);
  if (existsSync(file))
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "FILE",
      message: `${file} already exists.`,
      next: "Choose a file name that does not exist yet.",
    });
  removePartialOnSignal(file);
  await backUp(input, file);
  if (input.options["json"]) write(1, toJsonLine({ file }));
  if (!input.options["quiet"]) write(2, `Wrote ${file}. It contains the audit key: keep it private.\n`);
  return 0;
}

/**
 * Backs up the coordinator named by DROVER_API_URL, or else the database, or else this state directory. If a coordinator
 * serves the state directory, that coordinator makes the backup.
 */
async function backUp(input: CommandInput, file: string): Promise<void> {
  const database = input.env["DROVER_API_URL"] ? null : readDatabaseSettings(input.env);
  if (database !== null) return void (await backupRecord(database, file, new Date()));
  const { client, project } = await connect(input);
  if (client !== null) return fetchBackup(client, file);
  const { stateDirectory } = project.locations;
  const directory = recordDirectory(stateDirectory);
  if (!existsSync(databaseFile(directory))) throw usageError(`${stateDirectory} has no record to back up.`, "backup");
  await backupRecord({ directory }, file, new Date());
}

function fetchBackup(client: ApiClient, file: string): Promise<void> {
  return writeBackup(file, async (part) => {
    const content = await client.backup();
    // Open the file first: a stream that fails early would still create its file after the cleanup.
    return pipeline(content, (await open(part, "w")).createWriteStream());
  });
}

/** On a signal, removes the partial file and exits. */
function removePartialOnSignal(file: string): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      removePartial(file);
      process.exit(128 + constants.signals[signal]);
    });
}

async function restore(input: CommandInput): Promise<number> {
  const file = resolve(input.cwd, input.positionals[0]!);
  const { locations } = await findProject(input.env, input.cwd);
  const database = readDatabaseSettings(input.env);
  const keepTokens = input.options["keep-tokens"] === true;
  const record = recordDirectory(locations.stateDirectory);
  let token_file: string | null = null;
  const { audit, made_at, revoked_tokens } = await restoreRecord(database ?? { directory: record }, file, {
    now: new Date(),
    keepTokens,
    copyDirectory: record,
    // The next start registers this token as the admin's. The file is replaced before the record exists, so that an old
    // token is never registered.
    beforePublish() {
      if (!keepTokens && database === null) token_file = replaceTokenFile(record, newTokenText("drv_"));
    },
  });
  const head = database === null ? readHead(auditHeadFile(record)) : null;
  if (head && locations.headCopy) replaceHeadCopy(locations.headCopy, head);
  const target = database === null ? locations.stateDirectory : getPublicName(database.url);
  const tokens = { revoked_tokens, ...(token_file === null ? {} : { token_file }) };
  write(
    1,
    input.options["json"]
      ? toJsonLine({
          ...(database === null ? { state_directory: target } : { database: target }),
          made_at,
          ...tokens,
          ...audit,
        })
      : `Restored the backup of ${made_at} into ${target}: ${audit.rows} audit rows, ${audit.ok ? "intact" : `with an earlier fault: ${audit.first_bad?.what}`}.\nhead ${audit.head}\n`,
  );
  if (!input.options["quiet"]) write(2, describeTokens(revoked_tokens, token_file));
  return 0;
}

/** Describes which tokens are valid, and how clients and runners can connect again. */
function describeTokens(revoked: number | null, file: string | null): string {
  if (revoked === null)
    return `Tokens revoked after the backup was made are valid again: review them with ${findDroverCommand()} tokens list.\n`;
  const admin =
    file === null
      ? "Each coordinator writes a new admin token to fleet-token when it starts."
      : `${file} contains a new admin token.`;
  return [
    `Revoked all tokens of the backup; ${revoked} of them were still valid. ${admin}`,
    `Enrol each runner again: ${findDroverCommand()} tokens enrol NAME. Then remove runner-token from its state directory and start it with DROVER_ENROLMENT.`,
    "Hooks and webhooks have the secrets from the backup: rotate those that were rotated since.",
    "",
  ].join("\n");
}
