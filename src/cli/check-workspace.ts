import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { isOurs } from "../define/locations.ts";
import { RequestError } from "../model/errors.ts";

const access = constants.R_OK | constants.W_OK | constants.X_OK;

/** The real path of a workspace. Throws unless it is a writable directory that belongs to this user. */
export function checkWorkspace(path: string): string {
  let real: string;
  try {
    real = realpathSync(path);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (code === "ENOENT")
      throw refused("DROVER-USE-003", `${path} does not exist.`, `Create it: mkdir -p ${path}`, cause);
    if (code === "ENOTDIR") throw notDirectory(path);
    throw refused(
      "DROVER-USE-011",
      `Cannot access ${path} (${code}).`,
      "Name a directory that this user can access.",
      cause,
    );
  }
  const { uid } = statSync(real);
  if (!statSync(real).isDirectory()) throw notDirectory(path);
  if (!isOurs(path, access) || !isOurs(real, access))
    throw refused(
      "DROVER-USE-011",
      `${path} belongs to user ${uid}, but Drover runs as user ${process.getuid?.() ?? "unknown"}.`,
      "Name a directory of your own, or run this command as its owner.",
    );
  try {
    accessSync(real, access);
  } catch (cause) {
    throw refused("DROVER-USE-011", `This user cannot write to ${path}.`, `Allow it: chmod u+rwx ${path}`, cause);
  }
  return real;
}

function notDirectory(path: string): RequestError {
  return refused("DROVER-USE-004", `${path} is not a directory.`, "Name the directory that the agent should work in.");
}

function refused(
  code: "DROVER-USE-003" | "DROVER-USE-004" | "DROVER-USE-011",
  message: string,
  next: string,
  cause?: unknown,
): RequestError {
  return new RequestError({ code, field: "WORKSPACE", message, next, cause });
}
