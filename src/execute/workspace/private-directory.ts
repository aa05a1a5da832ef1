import { lstatSync, mkdirSync, rmSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { removeTree } from "./remove-tree.ts";

/**
 * Runs can write where their folders lie, and put a link in the place of one, or of a folder above it, to have something
 * written or removed elsewhere by a runner that may do more than they. Removes whatever is not a folder on the way from
 * `base`, which is the operator's and may be a link, down to `path`.
 */
export function removeNonDirectories(base: string, path: string): void {
  let at = base;
  for (const part of relative(base, path).split(sep)) {
    at = join(at, part);
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isDirectory()) return rmSync(at, { force: true });
  }
}

/** The folder itself, for its owner alone, whatever a run has put in its place. */
export function makePrivateDirectory(base: string, path: string): void {
  removeNonDirectories(base, path);
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** What lies in it is removed. What cannot be, such as a folder with an immutable file, stays and is reported. */
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
    const below = join(path, name);
    await removeTree(below).catch((error: unknown) =>
      onNotice(`${below} of an earlier run could not be removed`, error),
    );
  }
}
