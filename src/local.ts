import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname } from "node:path";
import { tryWrite } from "./cli/io.ts";
import { shellQuote } from "./cli/shell-quote.ts";
import { findLocations, type Locations } from "./define/locations.ts";
import { refuseEarlierState } from "./compose/earlier-state.ts";
import { isTrusted } from "./define/trust.ts";
import { type Config, defaultConfig } from "./model/config.ts";
import { createIds, type NewId } from "./model/ids.ts";
import { recordDirectory } from "./model/state-layout.ts";
import type { Environment } from "./model/environment.ts";
import { mismatchWarning } from "./record/audit/head-mismatch.ts";
import { openStore, type SqliteStore } from "./record/open.ts";

/** Drover without a coordinator: the state directory of this place, opened by this process itself. */
export interface Local {
  places: Locations;
  config: Config;
  /** Whether the project is trusted: its drover.yaml, else the repository, else the working directory. */
  trusted: boolean;
  /** What drover.yaml says and an untrusted one may not. */
  leftOut: readonly string[];
}

export async function findLocal(env: Environment, cwd: string): Promise<Local> {
  const places = findLocations(env, cwd);
  // inside a run, the record is the outer Drover's
  const isNested = Boolean(env["DROVER_NESTED_LOG"]);
  if (!isNested) refuseEarlierState(places.stateDirectory);
  if (places.ignoredState && !isNested) reportIgnoredState(places.ignoredState, places.stateDirectory);
  const { configFile, repository } = places;
  if (!configFile)
    return {
      places,
      config: defaultConfig,
      leftOut: [],
      // looked up for the few who ask: a cold exec does not
      get trusted() {
        return isTrusted(repository ?? cwd, env);
      },
    };
  const trusted = isTrustedProject(configFile, env);
  const { loadConfig, loadUntrustedConfig } = await import("./define/config.ts");
  if (trusted) return { places, config: loadConfig(configFile), trusted, leftOut: [] };
  return { places, trusted, ...loadUntrustedConfig(configFile) };
}

/** A link to nothing leads nowhere, but lies in its folder: where that is trusted, the mistake is shown. */
function isTrustedProject(configFile: string, env: Parameters<typeof isTrusted>[1]): boolean {
  return isTrusted(existsSync(configFile) ? configFile : dirname(configFile), env);
}

export function openLocalStore({ places }: Local): Promise<SqliteStore> {
  const directory = recordDirectory(places.stateDirectory);
  return openStore({
    directory,
    headCopy: places.headCopy,
    onMismatch: (head, rows) => tryWrite(2, `drover: ${mismatchWarning(directory, head, rows)}\n`),
    now: () => new Date(),
    createIfMissing: true,
  });
}

let passedOverTold = false;

/** Once for each command, however often it looks. */
function reportIgnoredState({ path, made }: NonNullable<Locations["ignoredState"]>, stateDirectory: string): void {
  if (passedOverTold) return;
  passedOverTold = true;
  const next = made
    ? `Use it where it is with drover trust ${shellQuote(dirname(path))}, or take it over`
    : "If your own Drover made it, take it over";
  tryWrite(
    2,
    `drover: ${path} is not used: the state of this place is in ${stateDirectory}. ${next} with drover state move --from ${shellQuote(path)}\n`,
  );
}

export function newLocalIds(): NewId {
  return createIds(Date.now, fillRandom);
}

/** The token of commands inside an `exec`. Of an attempt's shape, but not signed: only the process that made it takes it. */
export function newExecKey(): string {
  const bytes = Buffer.alloc(32);
  fillRandom(bytes);
  return `drva_exec.1.${bytes.toString("hex")}`;
}

/** The name behind the user id, so that an environment variable cannot claim another. */
export function localUser(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // a user id without a passwd entry, as in many containers
    if (error instanceof Error) return `uid-${process.getuid?.() ?? "unknown"}`;
    throw error;
  }
}

/** Straight from the kernel: loading node:crypto would cost a tenth of a cold `exec`. */
function fillRandom(bytes: Uint8Array): void {
  const fd = openSync("/dev/urandom", "r");
  try {
    readSync(fd, bytes);
  } finally {
    closeSync(fd);
  }
}
