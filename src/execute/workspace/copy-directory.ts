import { constants } from "node:fs";
import { chmod, copyFile, lstat, mkdir, readdir, readlink, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "./remove-tree.ts";

/**
 * Copies a session's directory, and renames the copy into place when it is complete. Skips files that vanish meanwhile,
 * and sockets, pipes and devices. Returns false, leaving nothing behind, if it was stopped.
 */
export async function copyDirectory(from: string, to: string, signal: AbortSignal): Promise<boolean> {
  const temporary = `${to}.copy`;
  await removeTree(temporary);
  await removeTree(to);
  await copyEntry(from, temporary, signal);
  if (signal.aborted) await removeTree(temporary);
  else await rename(temporary, to);
  return !signal.aborted;
}

async function copyEntry(from: string, to: string, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  try {
    const seen = await lstat(from);
    if (seen.isSymbolicLink()) await symlink(await readlink(from), to);
    else if (seen.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE);
    else if (seen.isDirectory()) {
      const names = await readdir(from);
      await mkdir(to, { mode: 0o700 });
      for (const name of names) await copyEntry(join(from, name), join(to, name), signal);
      // last, because the mode may make the directory read-only
      await chmod(to, seen.mode & 0o7777);
    }
  } catch (error) {
    if (!hasVanished(error)) throw error;
  }
}

/** ENOTDIR means that a directory was replaced by something else meanwhile. */
function hasVanished(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
