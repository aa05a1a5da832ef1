import { constants } from "node:fs";
import { chmod, copyFile, lstat, mkdir, readdir, readlink, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "./remove-tree.ts";

/**
 * A copy of a session's folder, moved into its place when it is whole. What vanishes meanwhile is left out, and so are
 * sockets, pipes and devices, which are of their moment. False: it was stopped, and nothing is there.
 */
export async function copyDirectory(from: string, to: string, signal: AbortSignal): Promise<boolean> {
  const aside = `${to}.copy`;
  await removeTree(aside);
  await removeTree(to);
  await copyEntry(from, aside, signal);
  if (signal.aborted) await removeTree(aside);
  else await rename(aside, to);
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
      // last: its own may forbid to write in it
      await chmod(to, seen.mode & 0o7777);
    }
  } catch (error) {
    if (!hasVanished(error)) throw error;
  }
}

/** ENOTDIR: a folder has become something else since it was looked at. */
function hasVanished(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
