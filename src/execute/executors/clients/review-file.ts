import { join } from "node:path";
import { errorCode, vanishedCodes } from "../../scaffold/find-files.ts";
import { createFile, inDirectory } from "../../scaffold/directory-walker.ts";
import { removeTree } from "../../workspace/remove-tree.ts";

/** Keeps the review small enough for the run's report. */
const maxBytes = 1024 * 1024;

/** `directory` is a real path: no link on the way to it is followed. */
const atRealPath = { real: true };

/** Opens the file into which a client writes its review. Links that the client leaves there are never followed. */
export async function openReview(directory: string, name: string) {
  const nameBytes = Buffer.from(name);
  const initialVersion = await readVersion(directory, nameBytes);
  return {
    /** Returns the text if the file has changed since it was opened; otherwise null. */
    async read(): Promise<string | null> {
      const version = await readVersion(directory, nameBytes);
      if (version === null || version === initialVersion) return null;
      return inDirectory(
        directory,
        [],
        async (opened) => {
          const file = await opened.openFile(nameBytes);
          try {
            const bytes = Buffer.alloc(maxBytes);
            const { bytesRead } = await file.read(bytes, 0, maxBytes, 0);
            const text = bytes.toString("utf8", 0, bytesRead).trim();
            return text === "" ? null : text;
          } finally {
            await file.close();
          }
        },
        atRealPath,
      );
    },
    async write(text: string): Promise<void> {
      await removeTree("/", join(directory, name));
      await inDirectory(directory, [], (opened) => createFile(opened, name, text, 0o644), atRealPath);
    },
  };
}

/** Returns a string that changes with each write; null if there is no regular file with this name. */
async function readVersion(directory: string, name: Buffer): Promise<string | null> {
  try {
    const stats = await inDirectory(directory, [], (opened) => opened.stat(name), atRealPath);
    return stats.isFile() ? `${stats.ino}:${stats.ctimeNs}` : null;
  } catch (error) {
    if (vanishedCodes.has(errorCode(error))) return null;
    throw error;
  }
}
