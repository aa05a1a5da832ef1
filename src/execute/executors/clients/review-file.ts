import { constants } from "node:fs";
import { lstat, open, rm } from "node:fs/promises";
import { join } from "node:path";

/** Keeps the review small enough for the run's report. */
const maxBytes = 1024 * 1024;

/** Opens the file into which a client writes its review. Links that the client leaves there are never followed. */
export async function openReview(directory: string, name: string) {
  const path = join(directory, name);
  const initialVersion = await readVersion(path);
  return {
    /** Returns the text if the file has changed since it was opened; otherwise null. */
    async read(): Promise<string | null> {
      const version = await readVersion(path);
      if (version === null || version === initialVersion) return null;
      const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const bytes = Buffer.alloc(maxBytes);
        const { bytesRead } = await file.read(bytes, 0, maxBytes, 0);
        const text = bytes.toString("utf8", 0, bytesRead).trim();
        return text === "" ? null : text;
      } finally {
        await file.close();
      }
    },
    async write(text: string): Promise<void> {
      await rm(path, { force: true, recursive: true });
      const file = await open(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o644,
      );
      try {
        await file.writeFile(text);
      } finally {
        await file.close();
      }
    },
  };
}

/** Returns a string that changes with each write; null if the path is not a regular file. */
async function readVersion(path: string): Promise<string | null> {
  try {
    const { ino, ctimeNs, ...stat } = await lstat(path, { bigint: true });
    return (stat.mode & BigInt(constants.S_IFMT)) === BigInt(constants.S_IFREG) ? `${ino}:${ctimeNs}` : null;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
