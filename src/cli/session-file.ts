import { randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { RequestError } from "../model/errors.ts";

/** The file that names the last session of a workspace. The agent can write it too, so its content has to be checked. */
export const sessionFile = (workspace: string): string => join(workspace, ".session");

const sessionIdPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns null if the file does not exist. Does not follow symbolic links or block on pipes. */
export function readSessionFile(workspace: string): string | null {
  const file = sessionFile(workspace);
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (code === "ENOENT") return null;
    throw unusableFile(file, code === "ELOOP" ? "it is a symbolic link" : `it cannot be read (${code})`, cause);
  }
  try {
    if (!fstatSync(fd).isFile()) throw unusableFile(file, "it is not a regular file");
    const bytes = Buffer.alloc(100);
    const text = bytes.toString("utf8", 0, readSync(fd, bytes)).trim();
    if (sessionIdPattern.test(text)) return text;
    throw unusableFile(file, "it does not contain a session id");
  } finally {
    closeSync(fd);
  }
}

/** Writes the file atomically, and never through a symbolic link. */
export function writeSessionFile(workspace: string, session_id: string): void {
  const partialFile = join(workspace, `.session.${randomUUID()}`);
  try {
    const fd = openSync(partialFile, "wx", 0o600);
    try {
      writeSync(fd, `${session_id}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(partialFile, sessionFile(workspace));
  } finally {
    rmSync(partialFile, { force: true });
  }
}

function unusableFile(file: string, reason: string, cause?: unknown): RequestError {
  return new RequestError({
    code: "DROVER-SUB-003",
    field: ".session",
    message: `Cannot read the session to resume from ${file}: ${reason}.`,
    next: "Remove the file, pass the session on the command line, or start another one with --new.",
    cause,
  });
}
