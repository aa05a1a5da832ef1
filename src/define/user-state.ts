import { realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { HostError } from "../model/errors.ts";
import { sha256 } from "../model/hmac.ts";
import type { Environment } from "../model/environment.ts";
import { requireErrorCode } from "./error-code.ts";

/** The directory of this user's Drover state; null if the user has no home and XDG_STATE_HOME is not set. */
export function userStateDirectory(env: Environment): string | null {
  const xdg = env["XDG_STATE_HOME"];
  // The XDG specification says to ignore a relative path.
  if (xdg && isAbsolute(xdg)) return join(xdg, "drover");
  const home = env["HOME"];
  const base = home && isAbsolute(home) ? home : readHomeFromUserDatabase();
  return base && join(base, ".local", "state", "drover");
}

/** The home directory in the user database. A shared directory such as /tmp would not be safe as a fallback. */
function readHomeFromUserDatabase(): string | null {
  try {
    return userInfo().homedir || null;
  } catch (error) {
    // The user id has no passwd entry.
    if (error instanceof Error) return null;
    throw error;
  }
}

export function createMissingHomeError(): HostError {
  return new HostError({
    code: "DROVER-STA-015",
    field: "HOME",
    message: "Drover has no directory for its state: this user has no home directory, and HOME is not set.",
    next: "Set DROVER_STATE_DIR to a directory that only this user can write to.",
  });
}

/**
 * The state directory of a project. Uses the real path, so that two clones are two projects, and a link to a project is the
 * same project.
 */
export function projectStateDirectory(userDirectory: string, project: string): string {
  const realProject = resolveRealPath(project);
  const slug = basename(realProject)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, 40);
  return join(userDirectory, "projects", `${slug || "project"}-${hashPath(realProject).slice(0, 12)}`);
}

/** The state directory for commands outside of any project. */
export const userWideStateDirectory = (userDirectory: string): string => join(userDirectory, "user");

/**
 * A second copy of the head of a record's audit chain, outside of the record. Its existence also shows that Drover created
 * the record for this user.
 */
export function headCopyFile(userDirectory: string, recordPath: string): string {
  return join(userDirectory, "heads", hashPath(resolveRealPath(recordPath)).slice(0, 32));
}

function hashPath(path: string): string {
  return Buffer.from(sha256(Buffer.from(path))).toString("hex");
}

/** For a path that does not exist, resolves the nearest existing parent directory. */
function resolveRealPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    requireErrorCode(error);
    return dirname(path) === path ? path : join(resolveRealPath(dirname(path)), basename(path));
  }
}
