import { existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { findLocations, type Locations } from "../define/locations.ts";
import { isTrusted } from "../define/trust.ts";
import { headCopyFile, userStateDirectory } from "../define/user-state.ts";
import { earlierStateFor, readMoving } from "../compose/earlier-state.ts";
import { databaseFile, recordDirectory, runsDirectory } from "../model/state-layout.ts";
import { moveState } from "../compose/move-state.ts";
import { readHeadCopy } from "../record/audit/head.ts";
import { verifyAudit } from "../record/audit/verify.ts";
import { columns } from "./help.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";

export const stateCommand: CommandSpec = {
  name: "state",
  summary: "where Drover keeps what it records of this folder, and how much that is",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover state", "of the project of this folder"],
    ["drover state move --from .drover", "take over a state of an earlier version"],
  ],
  options: {},
  run: showState,
};

export const stateMove: CommandSpec = {
  name: "state move",
  summary: "move a state directory to where this folder's state belongs, all of it or nothing",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover state move", "what an earlier version left here"],
    ["drover state move --from ~/old/.drover", "of a project that was moved, say"],
  ],
  options: { from: { value: "DIR", about: "the state directory to move; it brings its tokens, agents and schedules" } },
  run: move,
};

async function showState(input: CommandInput): Promise<number> {
  const places = findLocations(input.env, input.cwd);
  const found = describeState(places, input.env);
  if (input.options["json"]) {
    write(1, jsonLine(found));
    return 0;
  }
  const rows: (readonly [string, string])[] = [
    ["state directory", `${found.state_directory} (${found.because})`],
    ["record", `${found.record.path}, ${sizeText(found.record.bytes)}`],
    ["runs", `${found.runs.path}, ${sizeText(found.runs.bytes)}`],
    ["second head", found.second_head === null ? "none is kept" : secondHead(found.second_head)],
    ...(found.earlier === null ? [] : ([["to be moved", `${found.earlier} (${moveCommand(found.earlier)})`]] as const)),
    ...(found.not_used === null ? [] : ([["not used", `${found.not_used} (${moveCommand(found.not_used)})`]] as const)),
  ];
  write(1, `${columns(rows).join("\n")}\n`);
  return 0;
}

/** Why the state is where it is. */
export function reasonOf({ stateDirectory, configFile, repository }: Locations, env: CommandInput["env"]): string {
  if (env["DROVER_STATE_DIR"]) return "DROVER_STATE_DIR";
  if (basename(stateDirectory) === ".drover") return "a trusted folder's own";
  const project = configFile ? dirname(configFile) : repository;
  return project ? `of ${project}` : "your own, as this is in no project";
}

function describeState(places: Locations, env: CommandInput["env"]) {
  const { stateDirectory, ignoredState, headCopy = null } = places;
  const half = (path: string) => ({ path, bytes: sizeOf(path) });
  return {
    state_directory: stateDirectory,
    because: reasonOf(places, env),
    record: half(recordDirectory(stateDirectory)),
    runs: half(runsDirectory(stateDirectory)),
    second_head: headCopy,
    earlier: readMoving(stateDirectory)?.from ?? earlierStateFor(stateDirectory),
    not_used: ignoredState?.path ?? null,
  };
}

function secondHead(file: string): string {
  const head = readHeadCopy(file);
  return head ? `${file}, ${head.count} rows` : `${file}, not written yet`;
}

const moveCommand = (from: string): string => `drover state move --from ${shellQuote(from)}`;

async function move(input: CommandInput): Promise<number> {
  const places = findLocations(input.env, input.cwd);
  const to = places.stateDirectory;
  const given = text(input.options, "from");
  const from = given === undefined ? fromHere(places, input.env) : resolve(input.cwd, given);
  if (!existsSync(from) && readMoving(to)?.from !== from) throw usage(`There is no ${from}.`, "state move", "--from");
  const userFolder = userStateDirectory(input.env);
  moveState({ from, to, headCopyOf: (record) => userFolder && headCopyFile(userFolder, record) });
  const directory = recordDirectory(to);
  const audit = existsSync(databaseFile(directory))
    ? await verifyAudit({ directory, headCopy: places.headCopy })
    : null;
  if (input.options["json"]) {
    write(1, jsonLine({ from, state_directory: to, audit }));
    return 0;
  }
  const chain = audit && (audit.ok ? `whole, ${audit.rows} rows` : `which tells of a fault: ${audit.first_bad?.what}`);
  write(1, `Moved ${from} to ${to}.\n${audit ? `The audit chain is ${chain}.\nhead ${audit.head}\n` : ""}`);
  return 0;
}

/** One that a repository brought would bring the agents and tokens of its maker: it must be named, or its folder trusted. */
function fromHere(places: Locations, env: CommandInput["env"]): string {
  const { stateDirectory, ignoredState } = places;
  const earlier = readMoving(stateDirectory)?.from ?? earlierStateFor(stateDirectory);
  if (earlier !== null) return earlier;
  if (ignoredState === undefined)
    throw usage(`Nothing here has to be moved to ${stateDirectory}.`, "state move", "--from");
  if (isTrusted(dirname(ignoredState.path), env)) return ignoredState.path;
  throw usage(
    `Name it if your own Drover made it, as it brings its tokens, agents and schedules: ${moveCommand(ignoredState.path)}`,
    "state move",
    "--from",
  );
}

function sizeOf(path: string): number {
  try {
    const found = lstatSync(path);
    if (!found.isDirectory()) return found.size;
    return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
  } catch (error) {
    // gone meanwhile, as what runs leave is removed, or closed to us
    if (error instanceof Error && "code" in error) return 0;
    throw error;
  }
}

function sizeText(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
