import { closeSync, fsyncSync, openSync } from "node:fs";

/** Flushes a file or directory to disk. A new file is durable only after both the file and its directory are synced. */
export function sync(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
