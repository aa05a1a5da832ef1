import { join } from "node:path";
import { createFile, inDirectory } from "./directory-walker.ts";

/** Writes a private file into a directory that processes of the run can write to. Follows no link at either path. */
export async function writePrivate(directory: string, name: string, text: string): Promise<string> {
  await inDirectory(directory, [], async (opened) => {
    await opened.remove(Buffer.from(name)).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    });
    await createFile(opened, name, text, 0o600);
  });
  return join(directory, name);
}
