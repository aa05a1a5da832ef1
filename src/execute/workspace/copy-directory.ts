import { constants } from "node:fs";
import { chmod, copyFile, mkdir, readlink, rename, symlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { errorCode, type HeldDirectory, holdDirectory, openBelow, whileHeld } from "./held-directory.ts";
import { removeTree } from "./remove-tree.ts";

/**
 * Copies a session's directory, and renames the copy into place when it is complete. Skips files that vanish meanwhile,
 * and sockets, pipes and devices. Follows no symlink below `base`, even if other processes replace directories of the
 * source or of the copy meanwhile. Returns false, leaving nothing behind, if it was stopped.
 */
export async function copyDirectory(base: string, from: string, to: string, signal: AbortSignal): Promise<boolean> {
  const temporary = `${to}.copy`;
  await removeTree(base, temporary);
  await removeTree(base, to);
  await whileHeld(holdDirectory(base, dirname(to)), async (parent) => {
    const name = Buffer.from(basename(temporary));
    await mkdir(parent.at(name), { mode: 0o700 });
    await whileHeld(holdDirectory(base, from), (source) =>
      whileHeld(parent.open(name), (target) => copyTree(source, target, from, signal)),
    );
    if (!signal.aborted) await rename(parent.at(name), parent.at(Buffer.from(basename(to))));
  });
  if (signal.aborted) await removeTree(base, temporary);
  return !signal.aborted;
}

/** Bounds the work: opening a directory takes as many calls as it is deep. */
const maxDepth = 2000;

/** Opens each directory from the top again, so that the number of descriptors does not grow with the depth. */
async function copyTree(from: HeldDirectory, to: HeldDirectory, path: string, signal: AbortSignal): Promise<void> {
  /** The names that lead to each directory. A directory comes after the one that contains it. */
  const found: Buffer[][] = [[]];
  const modes: { parts: readonly Buffer[]; mode: number }[] = [];
  for (const parts of found) {
    if (parts.length > maxDepth)
      throw new Error(`${path} cannot be copied: its directories are nested more than ${maxDepth} deep.`);
    await unlessVanished(() =>
      whileHeld(openBelow(from, parts), (source) =>
        whileHeld(openBelow(to, parts), async (target) => {
          modes.push({ parts, mode: source.stat().mode & 0o7777 });
          for (const { name } of await source.entries()) {
            if (signal.aborted) return;
            const isDirectory = await unlessVanished(() => copyEntry(source, target, name));
            if (isDirectory) found.push([...parts, name]);
          }
        }),
      ),
    );
    if (signal.aborted) return;
  }
  // Last, and from the bottom up, because a mode may make a directory read-only.
  for (const { parts, mode } of modes.toReversed())
    await unlessVanished(() => whileHeld(openBelow(to, parts), (target) => chmod(target.self, mode)));
}

/** Copies a file or a symlink, or creates an empty directory. Returns whether it is a directory. */
async function copyEntry(source: HeldDirectory, target: HeldDirectory, name: Buffer): Promise<boolean> {
  return whileHeld(source.openEntry(name), async (entry) => {
    const stat = entry.stat();
    if (stat.isSymbolicLink()) await symlink(await readlink(source.at(name), { encoding: "buffer" }), target.at(name));
    else if (stat.isFile())
      // COPYFILE_EXCL also refuses a symlink at the target
      await copyFile(entry.self, target.at(name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    else if (stat.isDirectory()) await mkdir(target.at(name), { mode: 0o700 });
    return stat.isDirectory();
  });
}

/** ENOTDIR and EINVAL mean that a directory or a symlink was replaced by something else. */
const vanished: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "EINVAL"]);

async function unlessVanished<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (vanished.has(errorCode(error))) return null;
    throw error;
  }
}
