import { constants } from "node:fs";
import { chmod, copyFile, mkdir, readlink, rename, symlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { errorCode, type HeldDirectory, holdDirectory, openBelow, whileHeld } from "./held-directory.ts";
import { removeTree } from "./remove-tree.ts";

/**
 * Copies a session's directory, and renames the copy into place when it is complete. Skips files that vanish during the
 * copy, and sockets, pipes and devices. Follows no symlink below `base`, even if other processes replace directories of
 * the source or of the copy during that time. Returns false, leaving nothing behind, if it was stopped.
 */
export async function copyDirectory(
  base: string,
  sourcePath: string,
  targetPath: string,
  signal: AbortSignal,
): Promise<boolean> {
  const temporary = `${targetPath}.copy`;
  await removeTree(base, temporary);
  await removeTree(base, targetPath);
  await whileHeld(holdDirectory(base, dirname(targetPath)), async (parent) => {
    const name = Buffer.from(basename(temporary));
    await mkdir(parent.at(name), { mode: 0o700 });
    await whileHeld(holdDirectory(base, sourcePath), (source) =>
      whileHeld(parent.open(name), (target) => copyTree(source, target, sourcePath, signal)),
    );
    if (!signal.aborted) await rename(parent.at(name), parent.at(Buffer.from(basename(targetPath))));
  });
  if (!signal.aborted) return true;
  await removeTree(base, temporary);
  await removeTree(base, targetPath);
  return false;
}

/** Bounds the work: opening a directory takes one call per level. */
const maxDepth = 2000;

/** Opens each directory from the top again, so that the number of descriptors does not grow with the depth. */
async function copyTree(
  sourceRoot: HeldDirectory,
  targetRoot: HeldDirectory,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  /** The names that lead to each directory. A directory comes after the one that contains it. */
  const directories: Buffer[][] = [[]];
  const modes: { parts: readonly Buffer[]; mode: number }[] = [];
  for (const parts of directories) {
    if (parts.length > maxDepth)
      throw new Error(`${path} cannot be copied: its directories are nested more than ${maxDepth} deep.`);
    await unlessVanished(() =>
      whileHeld(openBelow(sourceRoot, parts), (source) =>
        whileHeld(openBelow(targetRoot, parts), async (target) => {
          modes.push({ parts, mode: source.stat().mode & 0o7777 });
          for (const { name } of await source.entries()) {
            if (signal.aborted) return;
            const isDirectory = await unlessVanished(() => copyEntry(source, target, name));
            if (isDirectory) directories.push([...parts, name]);
          }
        }),
      ),
    );
    if (signal.aborted) return;
  }
  // The modes are set last, and from the bottom up, because a mode may make a directory read-only.
  for (const { parts, mode } of modes.toReversed())
    await unlessVanished(() => whileHeld(openBelow(targetRoot, parts), (target) => chmod(target.self, mode)));
}

/** Copies a file or a symlink, or creates an empty directory. Returns whether it is a directory. */
async function copyEntry(source: HeldDirectory, target: HeldDirectory, name: Buffer): Promise<boolean> {
  return whileHeld(source.openEntry(name), async (entry) => {
    const stat = entry.stat();
    if (stat.isSymbolicLink()) await symlink(await readlink(source.at(name), { encoding: "buffer" }), target.at(name));
    else if (stat.isFile())
      // COPYFILE_EXCL also refuses a symlink at the target.
      await copyFile(entry.self, target.at(name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    else if (stat.isDirectory()) await mkdir(target.at(name), { mode: 0o700 });
    return stat.isDirectory();
  });
}

/** Codes of a vanished entry. ENOTDIR and EINVAL mean that something else replaced a directory or a symlink. */
const vanishedCodes: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "EINVAL"]);

async function unlessVanished<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (vanishedCodes.has(errorCode(error))) return null;
    throw error;
  }
}
