import { realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { HostError } from "../model/errors.ts";
import { sha256 } from "../model/hmac.ts";
import { errorCode } from "./error-code.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where this user's Drover keeps its state; null where the user has no home and names no folder. */
export function userStateDirectory(env: Environment): string | null {
  const base = env["XDG_STATE_HOME"];
  // a relative one would mean another folder at each call: the specification says to ignore it
  if (base && isAbsolute(base)) return join(base, "drover");
  const home = env["HOME"];
  const folder = home && isAbsolute(home) ? home : homeOfUser();
  return folder && join(folder, ".local", "state", "drover");
}

/** As the system knows it: a folder that everybody can write to, such as /tmp, would be anybody's. */
function homeOfUser(): string | null {
  try {
    return userInfo().homedir || null;
  } catch (error) {
    // a user id without a passwd entry
    if (error instanceof Error) return null;
    throw error;
  }
}

export function missingHome(): HostError {
  return new HostError({
    code: "DROVER-STA-015",
    field: "HOME",
    message: "There is no folder for Drover's state: this user has no home, and HOME is not set.",
    next: "Name one that only this user can write to: set DROVER_STATE_DIR.",
  });
}

/** The state of a project: by its real path, so that two clones are two projects and a link to one is that one. */
export function projectStateDirectory(userFolder: string, project: string): string {
  const real = realPathOf(project);
  const slug = basename(real)
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, 40);
  return join(userFolder, "projects", `${slug || "project"}-${hashOf(real).slice(0, 12)}`);
}

/** The state of whatever is in no project. */
export const userWideStateDirectory = (userFolder: string): string => join(userFolder, "user");

/** The head of a record's chain a second time, outside of it. That it is there also says that this user's Drover made the record. */
export function headCopyFile(userFolder: string, record: string): string {
  return join(userFolder, "heads", hashOf(realPathOf(record)).slice(0, 32));
}

function hashOf(path: string): string {
  return Buffer.from(sha256(Buffer.from(path))).toString("hex");
}

/** Of what does not exist (any more): by the real path of the folder that it would be in. */
function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    errorCode(error);
    return dirname(path) === path ? path : join(realPathOf(dirname(path)), basename(path));
  }
}
