import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  type HeldDirectory,
  holdDirectory,
  isReplaced,
  removeNonDirectory,
  replaceOrCreate,
  whileHeld,
} from "./held-directory.ts";
import { removeTree } from "./remove-tree.ts";

/**
 * Removes the first entry on the path from `base` down to `path` that is not a directory. A run could replace its
 * directory, or one above it, with a symlink to make a more privileged runner write or delete elsewhere. `base` belongs
 * to the operator and may be a symlink itself.
 */
export function removeNonDirectories(base: string, path: string): void {
  try {
    holdDirectory(base, path, (directory, name) => {
      try {
        return directory.open(name);
      } catch (error) {
        if (isReplaced(error)) removeNonDirectory(directory, name);
        throw error;
      }
    }).close();
  } catch (error) {
    if (!isReplaced(error)) throw error;
  }
}

/** Creates the directory for its owner alone, replacing anything else that a run has put there. */
export function makePrivateDirectory(base: string, path: string): void {
  holdPrivateDirectory(base, path).close();
}

/** Creates the directory as `makePrivateDirectory` does, and holds it. */
export function holdPrivateDirectory(base: string, path: string): HeldDirectory {
  mkdirSync(base, { recursive: true, mode: 0o700 });
  return holdDirectory(base, path, replaceOrCreate);
}

/** Whether there is a directory at this path. False if it, or a directory above it, is a symlink. */
export function isPrivateDirectory(base: string, path: string): boolean {
  const directory = tryHold(base, path);
  directory?.close();
  return directory !== null;
}

/** The names of the entries of a directory; none if there is no such directory. */
export async function listPrivateDirectory(base: string, path: string): Promise<string[]> {
  const directory = tryHold(base, path);
  if (directory === null) return [];
  return whileHeld(directory, async () => (await directory.entries()).map(({ name }) => name.toString()));
}

function tryHold(base: string, path: string): HeldDirectory | null {
  try {
    return holdDirectory(base, path);
  } catch (error) {
    if (isReplaced(error)) return null;
    throw error;
  }
}

/** Empties the directory. Reports files that cannot be removed, such as immutable ones, and leaves them there. */
export async function emptyPrivateDirectory(
  base: string,
  path: string,
  onNotice: (message: string, cause?: unknown) => void,
): Promise<void> {
  removeNonDirectories(base, path);
  for (const name of await listPrivateDirectory(base, path)) {
    const entryPath = join(path, name);
    await removeTree(base, entryPath).catch((error: unknown) =>
      onNotice(`${entryPath}, left by an earlier run, could not be removed`, error),
    );
  }
}
