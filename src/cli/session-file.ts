import { randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { RequestError } from "../model/errors.ts";

/** The name of the session that last worked in a workspace. The agent can write it too: it is a hint, to be checked. */
export const sessionFile = (workspace: string): string => join(workspace, ".session");

const sessionId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** null where there is none. A link is not followed, and a pipe is not waited for. */
export function readSessionFile(workspace: string): string | null {
  const file = sessionFile(workspace);
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    if (code === "ENOENT") return null;
    throw unusable(file, code === "ELOOP" ? "it is a symbolic link" : `it cannot be read (${code})`, cause);
  }
  try {
    if (!fstatSync(fd).isFile()) throw unusable(file, "it is not a file");
    const bytes = Buffer.alloc(100);
    const text = bytes.toString("utf8", 0, readSync(fd, bytes)).trim();
    if (sessionId.test(text)) return text;
    throw unusable(file, "it does not hold the id of a session");
  } finally {
    closeSync(fd);
  }
}

/** Whole or not at all, and never through a link. */
export function writeSessionFile(workspace: string, session_id: string): void {
  const aside = join(workspace, `.session.${randomUUID()}`);
  try {
    const fd = openSync(aside, "wx", 0o600);
    try {
      writeSync(fd, `${session_id}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(aside, sessionFile(workspace));
  } finally {
    rmSync(aside, { force: true });
  }
}

function unusable(file: string, why: string, cause?: unknown): RequestError {
  return new RequestError({
    code: "DROVER-SUB-003",
    field: ".session",
    message: `${file} does not say which session to resume: ${why}.`,
    next: "Remove it, name the session on the command line, or begin another one with --new.",
    cause,
  });
}
