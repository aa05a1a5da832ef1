import { accessSync, constants, existsSync, lstatSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { recordDirectory } from "../model/state-layout.ts";
import { isTrusted } from "./trust.ts";
import {
  headCopyFile,
  missingHome,
  userWideStateDirectory,
  projectStateDirectory,
  userStateDirectory,
} from "./user-state.ts";

/** Where a command's configuration, state and repository are, seen from the directory it is given in. */
export interface Locations {
  stateDirectory: string;
  /** The nearest drover.yaml upward, if there is one. */
  configFile: string | null;
  /** The nearest folder upward that holds `.git`. */
  repository: string | null;
  /** The head of the record's chain, kept a second time. None where this user has no folder for it. */
  headCopy?: string;
  /** A `.drover/` of this user that is not used. `made`: by this user's Drover, so that trust alone is missing. */
  ignoredState?: { path: string; made: boolean };
}

type Environment = Readonly<Record<string, string | undefined>>;

export function findLocations(env: Environment, cwd: string): Locations {
  const userFolder = userStateDirectory(env);
  const given = env["DROVER_STATE_DIR"];
  let state: string | null = given ? resolve(cwd, given) : null;
  let ignoredState: Locations["ignoredState"];
  let configFile: string | null = null;
  let repository: string | null = null;
  for (let folder = cwd; ; folder = dirname(folder)) {
    const inFolder = join(folder, ".drover");
    if (!state && isOurStateDirectory(inFolder)) {
      const made = isMadeHere(inFolder, userFolder);
      if (made && isTrusted(folder, env)) state = inFolder;
      else ignoredState ??= { path: inFolder, made };
    }
    if (!configFile && isOurs(join(folder, "drover.yaml"), constants.R_OK)) configFile = join(folder, "drover.yaml");
    if (!repository && look(join(folder, ".git"), statSync)) repository = folder;
    if (dirname(folder) === folder) break;
  }
  const project = configFile ? dirname(configFile) : repository;
  const stateDirectory = state ?? defaultState(userFolder, project);
  return {
    stateDirectory,
    configFile,
    repository,
    ...(userFolder === null ? {} : { headCopy: headCopyFile(userFolder, recordDirectory(stateDirectory)) }),
    ...(ignoredState === undefined ? {} : { ignoredState }),
  };
}

/** Never in the project: what a command or a repository does there must not reach the record. */
function defaultState(userFolder: string | null, project: string | null): string {
  if (userFolder === null) throw missingHome();
  return project === null ? userWideStateDirectory(userFolder) : projectStateDirectory(userFolder, project);
}

/** One that a repository brought has its owner and its contents, but nothing in this user's own folder. */
function isMadeHere(stateDirectory: string, userFolder: string | null): boolean {
  return userFolder !== null && existsSync(headCopyFile(userFolder, recordDirectory(stateDirectory)));
}

function isOurStateDirectory(path: string): boolean {
  return look(path, statSync)?.isDirectory() === true && isOurs(path, constants.R_OK | constants.W_OK | constants.X_OK);
}

/**
 * Someone else's folder in /tmp, say, must not decide how our commands run or where their record goes.
 * What root made for everyone counts where we can use it; root itself takes only what is root's.
 */
export function isOurs(path: string, access: number): boolean {
  const found = look(path, lstatSync);
  if (!found) return false;
  // a link to nothing is its owner's mistake, and they should hear of it
  const owners = [found.uid, look(path, statSync)?.uid ?? found.uid];
  const uid = process.getuid?.() ?? 0;
  if (owners.every((owner) => owner === uid)) return true;
  return owners.every((owner) => owner === uid || owner === 0) && uid !== 0 && mayUse(path, access);
}

function mayUse(path: string, access: number): boolean {
  try {
    accessSync(path, access);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

/** undefined where there is nothing, or nothing that we may see. */
function look(
  path: string,
  stat: (path: string, options: { throwIfNoEntry: false }) => Stats | undefined,
): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "EACCES" || error.code === "ELOOP"))
      return undefined;
    throw error;
  }
}
