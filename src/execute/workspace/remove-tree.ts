import { chmod, lstat, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a folder with everything in it, also where a program took away its own right to write there or nested folders
 * deeper than a path can name.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    // one call where it is empty, as a temporary folder nearly always is
    await rmdir(path);
  } catch {
    await removeFull(path);
  }
}

async function removeFull(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    if (!canBeFlattened(error)) throw error;
    await flatten(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** A RangeError: `rm` calls itself for each level, and runs out of stack. */
function canBeFlattened(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return error instanceof RangeError || code === "EACCES" || code === "EPERM" || code === "ENAMETOOLONG";
}

/** Paths below a folder may be this much longer than its own before what is there is moved up. */
const longest = 1024;

/** Makes every folder below writable, and moves those that lie too deep to the top. In bytes: a name need not be text. */
async function flatten(path: string): Promise<void> {
  const top = Buffer.from(path);
  const folders: Buffer[] = [top];
  let moved = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (!(await lstat(folder)).isDirectory()) continue;
    await chmod(folder, 0o700);
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: "buffer" })) {
      if (!entry.isDirectory()) continue;
      const below = Buffer.concat([folder, slash, entry.name]);
      if (below.length <= top.length + longest) folders.push(below);
      else folders.push(await moveUp(below, Buffer.from(join(path, `.removing-${(moved += 1)}`))));
    }
  }
}

const slash = Buffer.from("/");

async function moveUp(folder: Buffer, to: Buffer): Promise<Buffer> {
  // a folder is moved by those who may write in it
  await chmod(folder, 0o700);
  await rename(folder, to);
  return to;
}
