import { existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { findLocations, type Locations } from "../define/locations.ts";
import { isTrusted } from "../define/trust.ts";
import { headCopyFile, userStateDirectory } from "../define/user-state.ts";
import { findEarlierState, readMove } from "../compose/earlier-state.ts";
import { databaseFile, recordDirectory, runsDirectory } from "../model/state-layout.ts";
import { moveState } from "../compose/move-state.ts";
import { readHeadCopy } from "../record/audit/head.ts";
import { verifyAudit } from "../record/audit/verify.ts";
import { formatColumns } from "./help.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { findDroverCommand } from "./drover-command.ts";

export const stateCommand: CommandSpec = {
  name: "state",
  summary: "show where Drover keeps the state of this directory, and how large it is",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover state", "for the project in the current directory"],
    ["drover state move --from .drover", "take over the state of an earlier version"],
  ],
  options: {},
  run: showState,
};

export const stateMove: CommandSpec = {
  name: "state move",
  summary: "move a state directory to the location for this project, completely or not at all",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover state move", "the state that an earlier version left here"],
    ["drover state move --from ~/old/.drover", "for example after the project was moved"],
  ],
  options: {
    from: { placeholder: "DIR", description: "the state directory to move, with its tokens, agents and schedules" },
  },
  run: move,
};

async function showState(input: CommandInput): Promise<number> {
  const locations = findLocations(input.env, input.cwd);
  const state = describeState(locations, input.env);
  if (input.options["json"]) {
    write(1, toJsonLine(state));
    return 0;
  }
  const rows: (readonly [string, string])[] = [
    ["state directory", `${state.state_directory} (${state.because})`],
    ["record", `${state.record.path}, ${formatSize(state.record.bytes)}`],
    ["runs", `${state.runs.path}, ${formatSize(state.runs.bytes)}`],
    ["second head", state.second_head === null ? "none" : describeHeadCopy(state.second_head)],
    ...(state.earlier === null
      ? []
      : ([["to be moved", `${state.earlier} (${toMoveCommand(state.earlier)})`]] as const)),
    ...(state.not_used === null
      ? []
      : ([["not used", `${state.not_used} (${toMoveCommand(state.not_used)})`]] as const)),
  ];
  write(1, `${formatColumns(rows).join("\n")}\n`);
  return 0;
}

/** Explains why the state is in this directory. */
export function explainLocation(
  { stateDirectory, configFile, repository }: Locations,
  env: CommandInput["env"],
): string {
  if (env["DROVER_STATE_DIR"]) return "DROVER_STATE_DIR";
  if (basename(stateDirectory) === ".drover") return "in a trusted project";
  const project = configFile ? dirname(configFile) : repository;
  return project ? `for ${project}` : "for your user; this directory is not in a project";
}

function describeState(locations: Locations, env: CommandInput["env"]) {
  const { stateDirectory, ignoredState, headCopy = null } = locations;
  const describePart = (path: string) => ({ path, bytes: measureSize(path) });
  return {
    state_directory: stateDirectory,
    because: explainLocation(locations, env),
    record: describePart(recordDirectory(stateDirectory)),
    runs: describePart(runsDirectory(stateDirectory)),
    second_head: headCopy,
    earlier: readMove(stateDirectory)?.from ?? findEarlierState(stateDirectory),
    not_used: ignoredState?.path ?? null,
  };
}

function describeHeadCopy(file: string): string {
  const head = readHeadCopy(file);
  return head ? `${file}, ${head.count} rows` : `${file}, not yet written`;
}

const toMoveCommand = (from: string): string => `${findDroverCommand()} state move --from ${quoteForShell(from)}`;

async function move(input: CommandInput): Promise<number> {
  const locations = findLocations(input.env, input.cwd);
  const to = locations.stateDirectory;
  const fromOption = readText(input.options, "from");
  const from = fromOption === undefined ? findStateToMove(locations, input.env) : resolve(input.cwd, fromOption);
  if (!existsSync(from) && readMove(to)?.from !== from)
    throw usageError(`${from} does not exist.`, "state move", "--from");
  const userDirectory = userStateDirectory(input.env);
  moveState({ from, to, findHeadCopy: (record) => userDirectory && headCopyFile(userDirectory, record) });
  const directory = recordDirectory(to);
  const audit = existsSync(databaseFile(directory))
    ? await verifyAudit({ directory, headCopy: locations.headCopy })
    : null;
  if (input.options["json"]) {
    write(1, toJsonLine({ from, state_directory: to, audit }));
    return 0;
  }
  const chain = audit && (audit.ok ? `intact, ${audit.rows} rows` : `NOT intact: ${audit.first_bad?.what}`);
  write(1, `Moved ${from} to ${to}.\n${audit ? `The audit chain is ${chain}.\nhead ${audit.head}\n` : ""}`);
  return 0;
}

/**
 * Finds the state to move if the user did not pass one. A state directory that came with a repository would import the
 * agents and tokens of its author, so the user must pass its path or trust its directory.
 */
function findStateToMove(locations: Locations, env: CommandInput["env"]): string {
  const { stateDirectory, ignoredState } = locations;
  const earlier = readMove(stateDirectory)?.from ?? findEarlierState(stateDirectory);
  if (earlier !== null) return earlier;
  if (ignoredState === undefined)
    throw usageError(`No state was found that could be moved to ${stateDirectory}.`, "state move", "--from");
  if (isTrusted(dirname(ignoredState.path), env)) return ignoredState.path;
  throw usageError(
    `${ignoredState.path} was not moved, because its directory is not trusted and it contains tokens, agents and schedules. If you created it, pass its path: ${toMoveCommand(ignoredState.path)}`,
    "state move",
    "--from",
  );
}

function measureSize(path: string): number {
  try {
    const stats = lstatSync(path);
    if (!stats.isDirectory()) return stats.size;
    return readdirSync(path).reduce((sum, name) => sum + measureSize(join(path, name)), 0);
  } catch (error) {
    // The file was deleted in the meantime, for example by a finishing run, or cannot be read.
    if (error instanceof Error && "code" in error) return 0;
    throw error;
  }
}

function formatSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
