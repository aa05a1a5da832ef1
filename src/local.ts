import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname } from "node:path";
import { findDroverCommand, withDroverCommand } from "./cli/drover-command.ts";
import { tryWrite } from "./cli/io.ts";
import { quoteForShell } from "./cli/shell-quote.ts";
import { findLocations, type Locations } from "./define/locations.ts";
import { rejectEarlierState } from "./compose/earlier-state.ts";
import { isEntryTrusted, isTrusted } from "./define/trust.ts";
import { type Config, defaultConfig } from "./model/config.ts";
import { createIds, type NewId } from "./model/ids.ts";
import { recordDirectory } from "./model/state-layout.ts";
import type { Environment } from "./model/environment.ts";
import { formatMismatchWarning } from "./record/audit/head-mismatch.ts";
import { openStore, type SqliteStore } from "./record/open.ts";

/** Where Drover keeps its state for a directory, and with which configuration. Outside of projects, this is the user's own state. */
export interface Project {
  locations: Locations;
  config: Config;
  /** Whether drover.yaml is trusted or, if there is none, the repository or the working directory. */
  trusted: boolean;
  /** The settings of drover.yaml that are ignored because it is not trusted. */
  ignoredKeys: readonly string[];
}

export async function findProject(env: Environment, cwd: string): Promise<Project> {
  const locations = findLocations(env, cwd);
  // Inside a run, the record belongs to the Drover process that started the run.
  const isNested = Boolean(env["DROVER_NESTED_LOG"]);
  if (!isNested) rejectEarlierState(locations.stateDirectory);
  if (locations.ignoredState && !isNested) reportIgnoredState(locations.ignoredState, locations.stateDirectory);
  const { configFile, repository } = locations;
  if (!configFile)
    return {
      locations,
      config: defaultConfig,
      ignoredKeys: [],
      // Evaluated only if needed, because it would slow down a cold `exec`.
      get trusted() {
        return isTrusted(repository ?? cwd, env);
      },
    };
  const trusted = isTrustedProject(configFile, env);
  const { loadConfig, loadUntrustedConfig } = await import("./define/config.ts");
  if (trusted) return { locations, config: loadConfig(configFile), trusted, ignoredKeys: [] };
  return { locations, trusted, ...loadUntrustedConfig(configFile) };
}

/** For a dangling link, checks the directory that contains it, so that a trusted project reports the broken link. */
function isTrustedProject(configFile: string, env: Parameters<typeof isTrusted>[1]): boolean {
  return existsSync(configFile) ? isEntryTrusted(configFile, env) : isTrusted(dirname(configFile), env);
}

export function openLocalStore({ locations }: Project): Promise<SqliteStore> {
  const directory = recordDirectory(locations.stateDirectory);
  return openStore({
    directory,
    headCopy: locations.headCopy,
    onMismatch: (head, rows) =>
      tryWrite(2, withDroverCommand(`drover: ${formatMismatchWarning(directory, head, rows)}\n`)),
    now: () => new Date(),
    createIfMissing: true,
  });
}

let hasReportedIgnoredState = false;

/** Prints the notice at most once per process. */
function reportIgnoredState(
  { path, createdByUser }: NonNullable<Locations["ignoredState"]>,
  stateDirectory: string,
): void {
  if (hasReportedIgnoredState) return;
  hasReportedIgnoredState = true;
  const next = createdByUser
    ? `Trust it with ${findDroverCommand()} trust ${quoteForShell(dirname(path))}, or move it`
    : "If your own Drover created it, move it";
  tryWrite(
    2,
    `drover: ${path} is not used, because the state of this directory is in ${stateDirectory}. ${next} with ${findDroverCommand()} state move --from ${quoteForShell(path)}\n`,
  );
}

export function createLocalIds(): NewId {
  return createIds(Date.now, fillRandom);
}

/** Creates the token for commands inside an `exec`. It looks like an attempt token but is not signed. Only this process accepts it. */
export function createExecToken(): string {
  const bytes = Buffer.alloc(32);
  fillRandom(bytes);
  return `drva_exec.1.${bytes.toString("hex")}`;
}

/** Finds the name that belongs to the user id. Environment variables such as USER cannot fake it. */
export function findLocalUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // The user id has no passwd entry, as in many containers.
    if (error instanceof Error) return `uid-${process.getuid?.() ?? "unknown"}`;
    throw error;
  }
}

/** Reads random bytes from the kernel, because loading node:crypto takes a tenth of the time of a cold `exec`. */
function fillRandom(bytes: Uint8Array): void {
  const fd = openSync("/dev/urandom", "r");
  try {
    readSync(fd, bytes);
  } finally {
    closeSync(fd);
  }
}
