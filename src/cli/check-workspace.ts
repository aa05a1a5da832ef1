import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { hasAcceptableOwner } from "../define/locations.ts";
import { RequestError } from "../model/errors.ts";

const access = constants.R_OK | constants.W_OK | constants.X_OK;

/** Returns the real path of a workspace. Throws unless it is a writable directory that belongs to this user. */
export function checkWorkspace(path: string): string {
  let realPath: string;
  try {
    realPath = realpathSync(path);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (code === "ENOENT")
      throw workspaceError("DROVER-USE-003", `${path} does not exist.`, `Create it: mkdir -p ${path}`, cause);
    if (code === "ENOTDIR") throw notDirectory(path);
    throw workspaceError(
      "DROVER-USE-011",
      `Cannot access ${path} (${code}).`,
      "Choose a directory that this user can access.",
      cause,
    );
  }
  const { uid } = statSync(realPath);
  if (!statSync(realPath).isDirectory()) throw notDirectory(path);
  if (!hasAcceptableOwner(path, access) || !hasAcceptableOwner(realPath, access))
    throw workspaceError(
      "DROVER-USE-011",
      `${path} belongs to user ${uid}, but Drover runs as user ${process.getuid?.() ?? "unknown"}.`,
      "Choose a directory that belongs to you, or run this command as its owner.",
    );
  try {
    accessSync(realPath, access);
  } catch (cause) {
    throw workspaceError(
      "DROVER-USE-011",
      `This user cannot write to ${path}.`,
      `Allow it: chmod u+rwx ${path}`,
      cause,
    );
  }
  return realPath;
}

function notDirectory(path: string): RequestError {
  return workspaceError(
    "DROVER-USE-004",
    `${path} is not a directory.`,
    "Pass the directory that the agent should work in.",
  );
}

function workspaceError(
  code: "DROVER-USE-003" | "DROVER-USE-004" | "DROVER-USE-011",
  message: string,
  next: string,
  cause?: unknown,
): RequestError {
  return new RequestError({ code, field: "WORKSPACE", message, next, cause });
}
