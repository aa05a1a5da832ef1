import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { isOurs } from "../define/locations.ts";
import { RequestError } from "../model/errors.ts";

const access = constants.R_OK | constants.W_OK | constants.X_OK;

/** The real path of a folder that an agent may work in: one that is there, belongs to this user and can be written. */
export function checkWorkspace(path: string): string {
  let real: string;
  try {
    real = realpathSync(path);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (code === "ENOENT")
      throw refused("DROVER-USE-003", `There is no ${path}.`, `Create it: mkdir -p ${path}`, cause);
    if (code === "ENOTDIR") throw notFolder(path);
    throw refused(
      "DROVER-USE-011",
      `${path} cannot be entered (${code}).`,
      "Name a folder that this user can enter.",
      cause,
    );
  }
  const { uid } = statSync(real);
  if (!statSync(real).isDirectory()) throw notFolder(path);
  if (!isOurs(path, access) || !isOurs(real, access))
    throw refused(
      "DROVER-USE-011",
      `${path} belongs to the user ${uid}, and this is the user ${process.getuid?.() ?? "unknown"}.`,
      "Name a folder of your own, or call this as that user.",
    );
  try {
    accessSync(real, access);
  } catch (cause) {
    throw refused("DROVER-USE-011", `${path} cannot be written by this user.`, `Allow it: chmod u+rwx ${path}`, cause);
  }
  return real;
}

function notFolder(path: string): RequestError {
  return refused("DROVER-USE-004", `${path} is not a folder.`, "Name the folder that the agent works in.");
}

function refused(
  code: "DROVER-USE-003" | "DROVER-USE-004" | "DROVER-USE-011",
  message: string,
  next: string,
  cause?: unknown,
): RequestError {
  return new RequestError({ code, field: "WORKSPACE", message, next, cause });
}
