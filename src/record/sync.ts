import { closeSync, fsyncSync, openSync } from "node:fs";

/** Durable under its name only once this is done for the file and its folder. */
export function sync(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
