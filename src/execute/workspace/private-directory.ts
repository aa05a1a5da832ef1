import { lstatSync, mkdirSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { removeTree } from "./remove-tree.ts";

/**
 * Removes the first entry on the path from `base` down to `path` that is not a directory. A run could replace its
 * directory, or one above it, with a symlink to make a more privileged runner write or delete elsewhere. `base` belongs
 * to the operator and may be a symlink itself.
 */
export function removeNonDirectories(base: string, path: string): void {
  let current = base;
  for (const part of relative(base, path).split(sep)) {
    current = join(current, part);
    const stats = lstatSync(current, { throwIfNoEntry: false });
    if (stats === undefined) return;
    if (!stats.isDirectory()) return rmSync(current, { force: true });
  }
}

/** Creates the directory for its owner alone, replacing anything else that a run has put there. */
export function makePrivateDirectory(base: string, path: string): void {
  removeNonDirectories(base, path);
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** Empties the directory. Reports files that cannot be removed, such as immutable ones, and leaves them there. */
export async function emptyPrivateDirectory(
  base: string,
  path: string,
  onNotice: (message: string, cause?: unknown) => void,
): Promise<void> {
  removeNonDirectories(base, path);
  const names = await readdir(path).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
  for (const name of names) {
    const entryPath = join(path, name);
    await removeTree(base, entryPath).catch((error: unknown) =>
      onNotice(`${entryPath}, left by an earlier run, could not be removed`, error),
    );
  }
}
