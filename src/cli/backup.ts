import { createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { backupStore } from "../record/backup.ts";
import { restoreStore } from "../record/restore.ts";
import { findLocal } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { connect } from "./connect.ts";
import { write } from "./io.ts";
import { type CommandInput, type CommandSpec, usage } from "./options.ts";

export const backupCommand: CommandSpec = {
  name: "backup",
  summary: "the whole record in one file, while everything goes on",
  takes: "FILE",
  words: [1, 1],
  examples: [["drover backup drover-2026-01-31.backup", "holds the audit key: keep it as safe"]],
  options: {},
  run: backup,
};

export const restoreCommand: CommandSpec = {
  name: "restore",
  summary: "a backup into a state directory that has no record yet",
  takes: "FILE",
  words: [1, 1],
  examples: [
    ["DROVER_STATE_DIR=/srv/drover drover restore drover-2026-01-31.backup", "verified before anything uses it"],
  ],
  options: {},
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
  const { client, local } = await connect(input);
  if (client) {
    const partial = `${file}.${process.pid}.partial`;
    try {
      await pipeline(await client.backup(), createWriteStream(partial, { mode: 0o600, flags: "wx" }));
      renameSync(partial, file);
    } finally {
      rmSync(partial, { force: true });
    }
  } else {
    const { stateDirectory } = local.places;
    if (!existsSync(join(stateDirectory, "drover.db")))
      throw usage(`There is no record in ${stateDirectory} to back up.`, "backup");
    await backupStore({ directory: stateDirectory, file }, new Date());
  }
  if (!input.options["quiet"]) write(2, `Wrote ${file}. It holds the audit key: keep it private.\n`);
  return 0;
}

async function restore(input: CommandInput): Promise<number> {
  const file = resolve(input.cwd, input.positionals[0]!);
  const { places } = await findLocal(input.env, input.cwd);
  const { audit, made_at } = await restoreStore({ directory: places.stateDirectory, file });
  write(
    1,
    input.options["json"]
      ? `${JSON.stringify({ state_directory: places.stateDirectory, made_at, ...audit })}\n`
      : `Restored what was backed up at ${made_at} into ${places.stateDirectory}: ${audit.rows} audit rows, ${audit.ok ? "whole" : `which tell of an earlier fault: ${audit.first_bad?.what}`}.\nhead ${audit.head}\n`,
  );
  return 0;
}
