import { closeSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { HostError, RequestError } from "../model/errors.ts";
import type { StoredFile } from "../model/file.ts";
import { verifyContent } from "./verify-content.ts";

/**
 * Saves a file of a run atomically. If the target is a directory, the file keeps its name. An existing file is replaced
 * only with `force`. A symbolic link is replaced, never followed.
 */
export async function saveFile(
  content: AsyncIterable<Uint8Array>,
  stored: Pick<StoredFile, "path" | "sha256">,
  { target, cwd, force }: { target: string; cwd: string; force: boolean },
): Promise<string> {
  const path = resolve(cwd, target);
  const isDirectoryTarget = target.endsWith("/") || isDirectory(path);
  // Use only the base name: the stored path must not lead out of the directory.
  const file = isDirectoryTarget ? join(path, basename(stored.path)) : path;
  const partial = `${file}.${process.pid}.partial`;
  const reservedFile = force ? null : reserve(file);
  try {
    // Open the file first: a stream that fails early would still create its file after the cleanup.
    const handle = await open(partial, "wx", 0o644);
    await pipeline(verifyContent(content, stored), handle.createWriteStream());
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    if (reservedFile) rmSync(reservedFile, { force: true });
    throw isSystemError(error) ? cannotWrite(file, error) : error;
  }
  return file;
}

/** Creates an empty file, so that no other process can take the name before the rename. */
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
      message: `${file} already exists.`,
      next: "Choose another file name, or replace it with --force.",
      cause: error,
    });
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

function cannotWrite(file: string, cause: NodeJS.ErrnoException): HostError {
  return new HostError({
    code: "DROVER-OUT-001",
    message: `Cannot write ${file}: ${cause.message}`,
    next: "Free some disk space, create its directory, or choose another file.",
    cause,
  });
}
