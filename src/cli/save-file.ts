import { closeSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { HostError, RequestError } from "../model/errors.ts";
import type { StoredFile } from "../model/file.ts";
import { verifyContent } from "./verify-content.ts";

/**
 * Into a file of this machine, whole or not at all. A folder gets it under its own name. What is there already is
 * replaced only by force, and then itself: a link is never followed.
 */
export async function saveFile(
  content: AsyncIterable<Uint8Array>,
  stored: StoredFile,
  { target, cwd, force }: { target: string; cwd: string; force: boolean },
): Promise<string> {
  const asked = resolve(cwd, target);
  const intoFolder = target.endsWith("/") || isFolder(asked);
  // the last part of a path: a name that leads nowhere
  const file = intoFolder ? join(asked, basename(stored.path)) : asked;
  const partial = `${file}.${process.pid}.partial`;
  const reserved = force ? null : reserve(file);
  try {
    // opened first: a stream that fails before it has opened its file makes it after it was removed
    const opened = await open(partial, "wx", 0o644);
    await pipeline(verifyContent(content, stored), opened.createWriteStream());
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    if (reserved) rmSync(reserved, { force: true });
    throw isSystemError(error) ? cannotWrite(file, error) : error;
  }
  return file;
}

/** An empty file that nobody else had: from here on the name is ours to replace. */
function reserve(file: string): string {
  try {
    closeSync(openSync(file, "wx", 0o644));
    return file;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code !== "EEXIST") throw cannotWrite(file, error);
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "--output",
      message: `${file} exists already.`,
      next: "Name a new file, or give --force to replace it.",
      cause: error,
    });
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

function cannotWrite(file: string, cause: NodeJS.ErrnoException): HostError {
  return new HostError({
    code: "DROVER-OUT-001",
    message: `${file} cannot be written: ${cause.message}`,
    next: "Make room, make its folder, or name another place.",
    cause,
  });
}
