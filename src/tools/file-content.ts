import { isAscii, isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import type { Located, Workspace } from "./workspace.ts";
import { ToolFailure } from "./tool-failure.ts";

/** Longer texts are neither written nor patched; reading has its own bound. */
export const maxTextBytes = 10 * 1024 * 1024;

/** Opens the regular file a path names; `use` gets it with its size. */
export function withFile<T>(
  workspace: Workspace,
  path: string,
  use: (file: FileHandle, size: number, place: Located) => Promise<T>,
): Promise<T> {
  return workspace.at(path, { followLast: true }, async (place) => {
    if (place.name === null) throw new ToolFailure("not_a_file", `${path} is a folder, not a file.`);
    const file = await place.folder.file(place.name);
    try {
      return await use(file, (await file.stat()).size, place);
    } finally {
      await file.close();
    }
  });
}

/** The whole file as text. */
export async function readText(file: FileHandle, size: number, path: string): Promise<string> {
  if (size > maxTextBytes)
    throw new ToolFailure(
      "too_large",
      `${path} has ${size} bytes; at most ${maxTextBytes} can be edited. Use a command instead.`,
    );
  return asText(await file.readFile(), path);
}

export function asText(bytes: Uint8Array, path: string): string {
  const isPlain = isAscii(bytes);
  if (bytes.includes(0) || !(isPlain || isUtf8(bytes)))
    throw new ToolFailure("binary", `${path} is not UTF-8 text (${bytes.length} bytes were looked at).`);
  // the same for ASCII, and several times as fast
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(isPlain ? "latin1" : "utf8");
}
