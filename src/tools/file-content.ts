import { isAscii, isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import type { ResolvedPath, Workspace } from "./workspace.ts";
import { ToolFailure } from "./tool-failure.ts";

/** The limit for writing and patching. Reading has its own limit. */
export const maxTextBytes = 10 * 1024 * 1024;

/** Opens the regular file at a path and passes it to `use` with its size. */
export function withFile<T>(
  workspace: Workspace,
  path: string,
  use: (file: FileHandle, size: number, location: ResolvedPath) => Promise<T>,
): Promise<T> {
  return workspace.withPath(path, { followLast: true }, async (location) => {
    if (location.name === null) throw new ToolFailure("not_a_file", `${path} is a directory, not a file.`);
    const file = await location.directory.openFile(location.name);
    try {
      return await use(file, (await file.stat()).size, location);
    } finally {
      await file.close();
    }
  });
}

/** Returns the whole file as text. */
export async function readText(file: FileHandle, size: number, path: string): Promise<string> {
  if (size > maxTextBytes)
    throw new ToolFailure(
      "too_large",
      `${path} has ${size} bytes; the limit for editing is ${maxTextBytes}. Use a command instead.`,
    );
  return decodeText(await file.readFile(), path);
}

export function decodeText(bytes: Uint8Array, path: string): string {
  const isPlain = isAscii(bytes);
  if (bytes.includes(0) || !(isPlain || isUtf8(bytes)))
    throw new ToolFailure("binary", `${path} is not UTF-8 text (${bytes.length} bytes were checked).`);
  // For ASCII, latin1 gives the same result and is several times faster.
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(isPlain ? "latin1" : "utf8");
}
