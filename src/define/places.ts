import { lstatSync, type Stats, statSync } from "node:fs";
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
    if (!repository && look(join(folder, ".git"), statSync)) repository = folder;
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
  const found = look(path, lstatSync);
  const target = found?.isSymbolicLink() ? look(path, statSync) : found;
  if (!found || !target || !(kind === "file" ? target.isFile() : target.isDirectory())) return false;
  const uid = process.getuid?.() ?? 0;
  return uid === 0 || (found.uid === uid && target.uid === uid) || target.uid === 0;
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
