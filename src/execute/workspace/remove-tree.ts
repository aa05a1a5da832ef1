import { chmod, lstat, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a directory tree, even if parts of it are not writable or nested deeper than the longest path that the system
 * accepts.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    // a single call if it is empty, as temporary directories nearly always are
    await rmdir(path);
  } catch {
    await removeContents(path);
  }
}

async function removeContents(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    if (!canBeFlattened(error)) throw error;
    await flatten(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** `rm` recurses, so a very deep tree makes it throw a RangeError. */
function canBeFlattened(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return error instanceof RangeError || code === "EACCES" || code === "EPERM" || code === "ENAMETOOLONG";
}

/** Directories whose path is this much longer than the top's are moved up. */
const maxExtraLength = 1024;

/** Makes every directory writable and moves those that are too deep to the top. Uses buffers: names need not be UTF-8. */
async function flatten(path: string): Promise<void> {
  const top = Buffer.from(path);
  const pending: Buffer[] = [top];
  let moved = 0;
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    if (!(await lstat(directory)).isDirectory()) continue;
    await chmod(directory, 0o700);
    for (const entry of await readdir(directory, { withFileTypes: true, encoding: "buffer" })) {
      if (!entry.isDirectory()) continue;
      const below = Buffer.concat([directory, slash, entry.name]);
      if (below.length <= top.length + maxExtraLength) pending.push(below);
      else pending.push(await moveUp(below, Buffer.from(join(path, `.removing-${(moved += 1)}`))));
    }
  }
}

const slash = Buffer.from("/");

async function moveUp(directory: Buffer, to: Buffer): Promise<Buffer> {
  // only a writable directory can be moved
  await chmod(directory, 0o700);
  await rename(directory, to);
  return to;
}
