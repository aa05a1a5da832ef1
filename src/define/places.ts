import { accessSync, constants, lstatSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Where a command's configuration, state and repository are, seen from the directory it is given in. */
export interface Places {
  stateDirectory: string;
  /** The nearest drover.yaml upward, if there is one. */
  configFile: string | null;
  /** The nearest folder upward that holds `.git`. */
  repository: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function findPlaces(env: Environment, cwd: string): Places {
  let state: string | null = null;
  let configFile: string | null = null;
  let repository: string | null = null;
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (!state && isOurStateDirectory(join(folder, ".drover"))) state = join(folder, ".drover");
    if (!configFile && isOurs(join(folder, "drover.yaml"), constants.R_OK)) configFile = join(folder, "drover.yaml");
    if (!repository && look(join(folder, ".git"), statSync)) repository = folder;
    if (dirname(folder) === folder) break;
  }
  const given = env["DROVER_STATE_DIR"];
  return {
    stateDirectory: given ? resolve(cwd, given) : (state ?? newStateDirectory(env, configFile, repository)),
    configFile,
    repository,
  };
}

/** Where there is something already, it was passed over: it cannot be made there. */
function newStateDirectory(env: Environment, configFile: string | null, repository: string | null): string {
  const beside = configFile ? dirname(configFile) : repository;
  const wanted = beside && join(beside, ".drover");
  return wanted && !look(wanted, lstatSync) ? wanted : userStateDirectory(env);
}

function userStateDirectory(env: Environment): string {
  const base = env["XDG_STATE_HOME"];
  if (base?.startsWith("/")) return join(base, "drover");
  return join(env["HOME"] || "/tmp", ".local", "state", "drover");
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
  // a link to nothing is its owner's mistake, and told to them
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
