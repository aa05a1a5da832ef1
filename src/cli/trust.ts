import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isTrusted, listTrusted, revokeTrust, trustDirectory, trustProblem } from "../define/trust.ts";
import { RequestError } from "../model/errors.ts";
import { tryWrite, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { writeTable } from "./table.ts";

export const trustCommand: CommandSpec = {
  name: "trust",
  summary: "use what a folder brings: drover.yaml, profiles, agents, modules",
  takes: "[DIR]",
  arity: [0, 1],
  examples: [
    ["drover trust", "this folder and all below it, until revoked"],
    ["drover trust ~/work/site", "another one"],
    ["DROVER_TRUST=/srv/site:/srv/shared drover up", "without a record, for containers and CI"],
  ],
  options: {},
  run: trust,
};

export const trustList: CommandSpec = {
  name: "trust list",
  summary: "which folders are trusted, and which are not",
  takes: "",
  arity: [0, 0],
  examples: [["drover trust list", "every decision, with its date"]],
  options: {},
  run: list,
};

export const trustRevoke: CommandSpec = {
  name: "trust revoke",
  summary: "trust a folder no longer",
  takes: "[DIR]",
  arity: [0, 1],
  examples: [
    ["drover trust revoke", "this folder and all below it, also where a folder above it is trusted"],
    ["drover trust revoke ~/work/site", "another one, even if it is gone"],
  ],
  options: {},
  run: revoke,
};

async function trust({ positionals, cwd, env, options }: CommandInput): Promise<number> {
  const path = trustDirectory(resolve(cwd, positionals[0] ?? "."), env);
  if (options["json"]) write(1, jsonLine({ path, trusted: true }));
  else if (!options["quiet"]) tryWrite(2, `Trusted ${path}. Revoke it with: drover trust revoke ${path}\n`);
  return 0;
}

async function list({ env, options }: CommandInput): Promise<number> {
  const problem = trustProblem(env);
  if (problem !== null) tryWrite(2, `drover: ${problem}\n`);
  const entries = listTrusted(env);
  if (options["json"]) {
    for (const { path, trusted, at } of entries) write(1, jsonLine({ path, trusted, at }));
    return 0;
  }
  const rows = entries.map(({ path, trusted, at }) => {
    const lapsed = trusted && !isTrusted(path, env);
    return [path, lapsed ? "no longer" : trusted ? "yes" : "no", at.slice(0, 10)];
  });
  writeTable(["FOLDER", "TRUSTED", "SINCE"], rows);
  return 0;
}

async function revoke({ positionals, cwd, env, options }: CommandInput): Promise<number> {
  const given = resolve(cwd, positionals[0] ?? ".");
  const isKnown = existsSync(given) || listTrusted(env).some(({ path }) => path === given);
  if (!isKnown)
    throw new RequestError({
      code: "DROVER-USE-003",
      field: "DIR",
      message: `There is no ${given}, and it was never trusted.`,
      next: "`drover trust list` shows the folders.",
    });
  const path = revokeTrust(given, env);
  if (options["json"]) write(1, jsonLine({ path, trusted: false }));
  else if (!options["quiet"]) tryWrite(2, `${path} is not trusted any more.\n`);
  if (isTrusted(path, env))
    tryWrite(2, `drover: it still is while DROVER_TRUST names it, or as part of Drover itself.\n`);
  return 0;
}
