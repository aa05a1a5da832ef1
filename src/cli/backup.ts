import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { constants } from "node:os";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { readDatabaseSettings } from "../define/database-settings.ts";
import { findLocal } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { auditHeadFile, databaseFile, recordDirectory } from "../model/state-layout.ts";
import { readHead, replaceHeadCopy } from "../record/audit/head.ts";
import { removePartial, writeBackup } from "../record/backup-file.ts";
import { backupRecord } from "../record/backup.ts";
import { publicName } from "../record/postgres/faults.ts";
import { restoreRecord } from "../record/restore.ts";
import { replaceTokenFile } from "../serve/token-file.ts";
import { newTokenText } from "../serve/token-text.ts";
import type { ApiClient } from "../wire/client.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, usage } from "./options.ts";

export const backupCommand: CommandSpec = {
  name: "backup",
  summary: "the whole record in one file, while everything goes on",
  takes: "FILE",
  arity: [1, 1],
  examples: [["drover backup drover-2026-01-31.backup", "holds the audit key: keep it as safe"]],
  options: {},
  run: backup,
};

export const restoreCommand: CommandSpec = {
  name: "restore",
  summary: "a backup into a state directory, or a database, that has no record yet",
  takes: "FILE",
  arity: [1, 1],
  examples: [
    ["DROVER_STATE_DIR=/srv/drover drover restore drover-2026-01-31.backup", "verified before anything uses it"],
    ["DATABASE_URL=postgres://db/drover drover restore drover-2026-01-31.backup", "into PostgreSQL, of either engine"],
  ],
  options: {
    "keep-tokens": { about: "tokens stay as good as they were when the backup was made, also those revoked since" },
  },
  run: restore,
};

async function backup(input: CommandInput): Promise<number> {
  const file = resolve(input.cwd, input.positionals[0]!);
  if (existsSync(file))
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "FILE",
      message: `${file} exists already.`,
      next: "Name a new file.",
    });
  leaveNothing(file);
  await backUp(input, file);
  if (input.options["json"]) write(1, jsonLine({ file }));
  if (!input.options["quiet"]) write(2, `Wrote ${file}. It holds the audit key: keep it private.\n`);
  return 0;
}

/** Of the coordinator that is named, else of the database, else of this state directory, by its coordinator if one serves. */
async function backUp(input: CommandInput, file: string): Promise<void> {
  const database = input.env["DROVER_API_URL"] ? null : readDatabaseSettings(input.env);
  if (database !== null) return void (await backupRecord(database, file, new Date()));
  const { client, local } = await connect(input);
  if (client !== null) return fetchBackup(client, file);
  const { stateDirectory } = local.places;
  const directory = recordDirectory(stateDirectory);
  if (!existsSync(databaseFile(directory)))
    throw usage(`There is no record in ${stateDirectory} to back up.`, "backup");
  await backupRecord({ directory }, file, new Date());
}

function fetchBackup(client: ApiClient, file: string): Promise<void> {
  return writeBackup(file, async (part) => {
    const content = await client.backup();
    // opened first: a stream that fails before it has opened its file makes it after it was removed
    return pipeline(content, (await open(part, "w")).createWriteStream());
  });
}

/** Told to end in the middle, it goes at once, and takes what it has written along. */
function leaveNothing(file: string): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      removePartial(file);
      process.exit(128 + constants.signals[signal]);
    });
}

async function restore(input: CommandInput): Promise<number> {
  const file = resolve(input.cwd, input.positionals[0]!);
  const { places } = await findLocal(input.env, input.cwd);
  const database = readDatabaseSettings(input.env);
  const keepTokens = input.options["keep-tokens"] === true;
  const record = recordDirectory(places.stateDirectory);
  let token_file: string | null = null;
  const { audit, made_at, revoked_tokens } = await restoreRecord(database ?? { directory: record }, file, {
    now: new Date(),
    keepTokens,
    // the next start makes it the admin's; before there is a record, so that an old one is never put into it
    beforePublish() {
      if (!keepTokens && database === null) token_file = replaceTokenFile(record, newTokenText("drv_"));
    },
  });
  const head = database === null ? readHead(auditHeadFile(record)) : null;
  if (head && places.headCopy) replaceHeadCopy(places.headCopy, head);
  const into = database === null ? places.stateDirectory : publicName(database.url);
  const tokens = { revoked_tokens, ...(token_file === null ? {} : { token_file }) };
  write(
    1,
    input.options["json"]
      ? jsonLine({
          ...(database === null ? { state_directory: into } : { database: into }),
          made_at,
          ...tokens,
          ...audit,
        })
      : `Restored what was backed up at ${made_at} into ${into}: ${audit.rows} audit rows, ${audit.ok ? "whole" : `which tell of an earlier fault: ${audit.first_bad?.what}`}.\nhead ${audit.head}\n`,
  );
  if (!input.options["quiet"]) write(2, aboutTokens(revoked_tokens, token_file));
  return 0;
}

/** What has to be done before everything works again. */
function aboutTokens(revoked: number | null, file: string | null): string {
  if (revoked === null)
    return "Tokens that were revoked after the backup was made work again: look through drover tokens list.\n";
  const admin =
    file === null
      ? "Each coordinator writes a new admin token to fleet-token when it starts."
      : `${file} holds a new admin token.`;
  return [
    `Revoked all tokens of the backup; ${revoked} of them were good. ${admin}`,
    "Enrol each runner again: drover tokens enrol NAME. Then remove runner-token from its state directory and start it with DROVER_ENROLMENT.",
    "Hooks and webhooks have the secrets they had then: rotate those that were rotated since.",
    "",
  ].join("\n");
}
