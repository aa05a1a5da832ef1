import { lstatSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where a command's configuration, state and repository are, seen from the directory it is given in. */
export interface Places {
  stateDirectory: string;
  /** The nearest drover.yaml upward, if there is one. */
  configFile: string | null;
  /** The nearest folder upward that holds `.git`. */
  repository: string | null;
}

export function findPlaces(env: Readonly<Record<string, string | undefined>>, cwd: string): Places {
  let state: string | null = null;
  let configFile: string | null = null;
  let repository: string | null = null;
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (!state && isOurs(join(folder, ".drover"), "directory")) state = join(folder, ".drover");
    if (!configFile && isOurs(join(folder, "drover.yaml"), "file")) configFile = join(folder, "drover.yaml");
    if (!repository && statSync(join(folder, ".git"), { throwIfNoEntry: false })) repository = folder;
    if (dirname(folder) === folder) break;
  }
  const beside = configFile ? dirname(configFile) : repository;
  return {
    stateDirectory: env["DROVER_STATE_DIR"] || state || (beside ? join(beside, ".drover") : userStateDirectory(env)),
    configFile,
    repository,
  };
}

function userStateDirectory(env: Readonly<Record<string, string | undefined>>): string {
  const base = env["XDG_STATE_HOME"];
  if (base?.startsWith("/")) return join(base, "drover");
  return join(env["HOME"] || "/tmp", ".local", "state", "drover");
}

/** Someone else's folder in /tmp, say, must not decide how our commands run or where their record goes. */
function isOurs(path: string, kind: "file" | "directory"): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return false;
  const target = found.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : found;
  if (!target || !(kind === "file" ? target.isFile() : target.isDirectory())) return false;
  const uid = process.getuid?.() ?? 0;
  return uid === 0 || (found.uid === uid && target.uid === uid) || target.uid === 0;
}
