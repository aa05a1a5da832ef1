import { join } from "node:path";
import { errorCode, vanishedCodes } from "../../scaffold/find-files.ts";
import { inDirectory, toPathParts } from "../../scaffold/directory-walker.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";

/**
 * Reads a file below `root` that agents may have replaced: does not follow links, never blocks on a pipe or a socket, and
 * reads at most `maxBytes`. Returns null if the file does not exist.
 */
export async function readRegularFile(root: string, name: string, maxBytes: number): Promise<string | null> {
  const parts = toPathParts(name);
  const path = join(root, name);
  try {
    return await inDirectory(root, parts.slice(0, -1), async (directory) => {
      const file = await directory.openFile(parts.at(-1)!);
      try {
        const { size } = await file.stat();
        if (size > maxBytes) throw new RunFailure("refused", `${path} is larger than ${maxBytes} bytes.`);
        const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
        return buffer.toString("utf8", 0, bytesRead);
      } finally {
        await file.close();
      }
    });
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    if (!vanishedCodes.has(errorCode(error))) throw error;
    throw new RunFailure("refused", `${path} is not a regular file. Start a new session.`, { cause: error });
  }
}
