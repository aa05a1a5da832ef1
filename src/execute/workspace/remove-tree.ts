import { chmod, lstat, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";

/** With everything in it, also where a program took the right to write from its own folders. */
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
    if (!(error instanceof Error && "code" in error && (error.code === "EACCES" || error.code === "EPERM")))
      throw error;
    await openUp(path);
    await rm(path, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function openUp(folder: string): Promise<void> {
  if (!(await lstat(folder)).isDirectory()) return;
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await openUp(join(folder, entry.name));
}
