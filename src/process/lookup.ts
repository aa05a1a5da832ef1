import { accessSync, constants, statSync } from "node:fs";
import { join, resolve } from "node:path";

export type Lookup = { found: string } | { missing: "nowhere" | "not_executable"; where?: string };

/** The search path of Unix systems if PATH is not set. */
const defaultPath = "/usr/local/bin:/usr/bin:/bin";

/** Finds the file that `exec` would run: a path is used directly, and a name is searched in PATH. */
export function findExecutable(name: string, path: string | undefined, workingDirectory: string): Lookup {
  if (name.includes("/")) return judge(resolve(workingDirectory, name));
  let refused: string | undefined;
  for (const directory of (path ?? defaultPath).split(":")) {
    const candidate = join(directory.startsWith("/") ? directory : resolve(workingDirectory, directory), name);
    const verdict = judge(candidate);
    if ("found" in verdict) return verdict;
    if (verdict.missing === "not_executable") refused ??= candidate;
  }
  return refused === undefined ? { missing: "nowhere" } : { missing: "not_executable", where: refused };
}

function judge(file: string): Lookup {
  const mode = modeOf(file);
  if (mode === null) return { missing: "nowhere" };
  if (mode === "not a file" || (mode & 0o111) === 0) return { missing: "not_executable", where: file };
  try {
    accessSync(file, constants.X_OK);
    return { found: file };
  } catch {
    // not executable for this user: exec would fail in the same way
    return { missing: "not_executable", where: file };
  }
}

/** Returns null if the file is missing or not accessible. Like shells, this skips unreadable directories in PATH. */
function modeOf(file: string): number | "not a file" | null {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return null;
    return stat.isFile() ? stat.mode : "not a file";
  } catch {
    return null;
  }
}
