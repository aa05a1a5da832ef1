import { accessSync, constants, existsSync, lstatSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { recordDirectory } from "../model/state-layout.ts";
import type { Environment } from "../model/environment.ts";
import { isTrusted } from "./trust.ts";
import {
  headCopyFile,
  createMissingHomeError,
  userWideStateDirectory,
  projectStateDirectory,
  userStateDirectory,
} from "./user-state.ts";

/** The configuration, state and repository that a command uses, found from its working directory. */
export interface Locations {
  stateDirectory: string;
  /** The nearest drover.yaml in this directory or above. */
  configFile: string | null;
  /** The nearest directory, this one or above, that contains `.git`. */
  repository: string | null;
  /** A second copy of the head of the record's audit chain. Unset if this user has no directory for it. */
  headCopy?: string;
  /** A `.drover/` of this user that is not used. `createdByUser` means that only trust is missing. */
  ignoredState?: { path: string; createdByUser: boolean };
}

export function findLocations(env: Environment, cwd: string): Locations {
  const userDirectory = userStateDirectory(env);
  const stateVariable = env["DROVER_STATE_DIR"];
  let state: string | null = stateVariable ? resolve(cwd, stateVariable) : null;
  let ignoredState: Locations["ignoredState"];
  let configFile: string | null = null;
  let repository: string | null = null;
  for (let directory = cwd; ; directory = dirname(directory)) {
    const candidate = join(directory, ".drover");
    if (!state && isUsableStateDirectory(candidate)) {
      const createdByUser = wasCreatedByUser(candidate, userDirectory);
      if (createdByUser && isTrusted(directory, env)) state = candidate;
      else ignoredState ??= { path: candidate, createdByUser };
    }
    if (!configFile && hasAcceptableOwner(join(directory, "drover.yaml"), constants.R_OK))
      configFile = join(directory, "drover.yaml");
    if (!repository && statIfVisible(join(directory, ".git"), statSync)) repository = directory;
    if (dirname(directory) === directory) break;
  }
  const project = configFile ? dirname(configFile) : repository;
  const stateDirectory = state ?? chooseDefaultStateDirectory(userDirectory, project);
  return {
    stateDirectory,
    configFile,
    repository,
    ...(userDirectory === null ? {} : { headCopy: headCopyFile(userDirectory, recordDirectory(stateDirectory)) }),
    ...(ignoredState === undefined ? {} : { ignoredState }),
  };
}

/** Never returns a directory inside the project, where commands and the repository could modify the record. */
function chooseDefaultStateDirectory(userDirectory: string | null, project: string | null): string {
  if (userDirectory === null) throw createMissingHomeError();
  return project === null ? userWideStateDirectory(userDirectory) : projectStateDirectory(userDirectory, project);
}

/**
 * A state directory that came with a repository can have the right owner and contents, but no head copy in the user's own
 * state.
 */
function wasCreatedByUser(stateDirectory: string, userDirectory: string | null): boolean {
  const record = recordDirectory(stateDirectory);
  // A link could lead to the state of another project.
  const isLinked = [stateDirectory, record].some((path) => statIfVisible(path, lstatSync)?.isSymbolicLink());
  return userDirectory !== null && !isLinked && existsSync(headCopyFile(userDirectory, record));
}

function isUsableStateDirectory(path: string): boolean {
  return (
    statIfVisible(path, statSync)?.isDirectory() === true &&
    hasAcceptableOwner(path, constants.R_OK | constants.W_OK | constants.X_OK)
  );
}

/**
 * Whether Drover may use a path, judging by its owner. Another user's directory in /tmp must not decide how commands
 * run or where their record is stored. Files of root are accepted for all users; root accepts only its own files.
 */
export function hasAcceptableOwner(path: string, access: number): boolean {
  const stats = statIfVisible(path, lstatSync);
  if (!stats) return false;
  // A dangling link is judged by its own owner, so that using it reports the error.
  const owners = [stats.uid, statIfVisible(path, statSync)?.uid ?? stats.uid];
  const uid = process.getuid?.() ?? 0;
  if (owners.every((owner) => owner === uid)) return true;
  return owners.every((owner) => owner === uid || owner === 0) && uid !== 0 && isAccessible(path, access);
}

function isAccessible(path: string, access: number): boolean {
  try {
    accessSync(path, access);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

/** Returns undefined if the path does not exist or this user may not see it. */
function statIfVisible(
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
