import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isTrusted, listTrusted, revokeTrust, trustDirectory, getTrustProblem } from "../define/trust.ts";
import { RequestError } from "../model/errors.ts";
import { tryWrite, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { noteSharedRecord } from "./shared-record.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const trustCommand: CommandSpec = {
  name: "trust",
  summary: "trust a directory, so that Drover uses its drover.yaml, profiles, agents and modules",
  placeholders: "[DIR]",
  arity: [0, 1],
  examples: [
    ["drover trust", "the current directory and everything below it"],
    ["drover trust ~/work/site", "another directory"],
    ["DROVER_TRUST=/srv/site:/srv/shared drover up", "only for this command, for containers and CI"],
  ],
  options: {},
  run: runTrust,
};

export const trustList: CommandSpec = {
  name: "trust list",
  summary: "list directories that were trusted or declined",
  placeholders: "",
  arity: [0, 0],
  examples: [["drover trust list", "all decisions, with their dates"]],
  options: {},
  run: listDirectories,
};

export const trustRevoke: CommandSpec = {
  name: "trust revoke",
  summary: "stop trusting a directory",
  placeholders: "[DIR]",
  arity: [0, 1],
  examples: [
    ["drover trust revoke", "the current directory and everything below it, even if a parent is trusted"],
    ["drover trust revoke ~/work/site", "another directory, even if it no longer exists"],
  ],
  options: {},
  run: revokeDirectory,
};

async function runTrust({ positionals, cwd, env, options }: CommandInput): Promise<number> {
  const path = trustDirectory(resolve(cwd, positionals[0] ?? "."), env);
  if (options["json"]) write(1, toJsonLine({ path, trusted: true }));
  else if (!options["quiet"])
    tryWrite(2, `Trusted ${path}. Revoke it with: ${findDroverCommand()} trust revoke ${path}\n`);
  if (!options["json"] && !options["quiet"]) noteSharedRecord(path, env);
  return 0;
}

async function listDirectories({ env, options }: CommandInput): Promise<number> {
  const problem = getTrustProblem(env);
  if (problem !== null) tryWrite(2, `drover: ${problem}\n`);
  const entries = listTrusted(env);
  if (options["json"]) {
    for (const { path, trusted, at } of entries) write(1, toJsonLine({ path, trusted, at }));
    return 0;
  }
  const rows = entries.map(({ path, trusted, at }) => {
    const expired = trusted && !isTrusted(path, env);
    return [path, expired ? "no longer" : trusted ? "yes" : "no", at.slice(0, 10)];
  });
  writeTable(["DIRECTORY", "TRUSTED", "SINCE"], rows);
  return 0;
}

async function revokeDirectory({ positionals, cwd, env, options }: CommandInput): Promise<number> {
  const directory = resolve(cwd, positionals[0] ?? ".");
  const isKnown = existsSync(directory) || listTrusted(env).some(({ path }) => path === directory);
  if (!isKnown)
    throw new RequestError({
      code: "DROVER-USE-003",
      field: "DIR",
      message: `${directory} does not exist and was never trusted.`,
      next: "Run `drover trust list` to see the directories.",
    });
  const path = revokeTrust(directory, env);
  if (options["json"]) write(1, toJsonLine({ path, trusted: false }));
  else if (!options["quiet"]) tryWrite(2, `${path} is no longer trusted.\n`);
  if (isTrusted(path, env))
    tryWrite(2, `drover: ${path} is still trusted, because DROVER_TRUST names it or it is part of Drover.\n`);
  return 0;
}
