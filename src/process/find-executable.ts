import { accessSync, constants, statSync } from "node:fs";

export type Lookup = { found: string } | { missing: "nowhere" | "not_executable"; path?: string };

/** The search path that Unix systems use if PATH is not set. */
const defaultPath = "/usr/local/bin:/usr/bin:/bin";

/** Finds the file that `exec` would run: a path is used directly, and a name is looked up on PATH. */
export function findExecutable(name: string, path: string | undefined, workingDirectory: string): Lookup {
  if (name.includes("/")) return checkFile(resolveIn(workingDirectory, name));
  let notExecutable: string | undefined;
  for (const directory of (path ?? defaultPath).split(":")) {
    const candidate = resolveIn(workingDirectory, `${directory === "" ? "." : directory}/${name}`);
    const result = checkFile(candidate);
    if ("found" in result) return result;
    if (result.missing === "not_executable") notExecutable ??= candidate;
  }
  return notExecutable === undefined ? { missing: "nowhere" } : { missing: "not_executable", path: notExecutable };
}

/** Leaves `..` to the kernel, because the working directory may be a descriptor in /proc. */
function resolveIn(workingDirectory: string, path: string): string {
  if (path.startsWith("/")) return path;
  return `${workingDirectory === "/" ? "" : workingDirectory}/${path.replace(/^(?:\.\/+)+/, "")}`;
}

function checkFile(file: string): Lookup {
  const mode = readMode(file);
  if (mode === null) return { missing: "nowhere" };
  if (mode === "not a file" || (mode & 0o111) === 0) return { missing: "not_executable", path: file };
  try {
    accessSync(file, constants.X_OK);
    return { found: file };
  } catch {
    // Not executable for this user: exec would fail in the same way.
    return { missing: "not_executable", path: file };
  }
}

/** Returns null if the file is missing or not accessible. Like shells, this skips unreadable directories in PATH. */
function readMode(file: string): number | "not a file" | null {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return null;
    return stat.isFile() ? stat.mode : "not a file";
  } catch {
    return null;
  }
}
