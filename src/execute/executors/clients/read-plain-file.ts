import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { RunFailure } from "../../scaffold/run-failure.ts";

/**
 * Reads a file that agents may have replaced: follows no link, never blocks on a pipe or a socket, and reads at most
 * `maxBytes`. Returns null if the file does not exist.
 */
export async function readPlainFile(path: string, maxBytes: number): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      const code = error instanceof Error && "code" in error ? error.code : null;
      if (code === "ENOENT") return null;
      // it is a link or a socket
      if (code === "ELOOP" || code === "ENXIO") throw notPlain(path, error);
      throw error;
    },
  );
  if (file === null) return null;
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw notPlain(path);
    if (stat.size > maxBytes) throw new RunFailure("refused", `${path} is larger than ${maxBytes} bytes.`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function notPlain(path: string, cause?: unknown): RunFailure {
  return new RunFailure("refused", `${path} is not a plain file. Start a new session.`, { cause });
}
