import type { FileHandle } from "node:fs/promises";
import * as z from "zod";
import { asText, withFile } from "./file-content.ts";
import { fileTool } from "./file-tool.ts";

const lineFeed = 0x0a;
const chunkBytes = 256 * 1024;
/** The most that one call returns. */
const maxBytes = 2 * 1024 * 1024;

export const readTool = fileTool({
  name: "file.read",
  description: "Read a file from the workspace",
  effect: "read",
  input: z.strictObject({
    path: z.string().describe("Path relative to workspace"),
    offset: z.int().min(1).optional().describe("Line to start from (optional)"),
    limit: z.int().min(1).optional().describe("Max lines to read (optional)"),
  }),
  run: ({ path, offset = 1, limit = Infinity }, { workspace, signal }) =>
    withFile(workspace, path, async (file, size) => {
      const { bytes, lines, ended } = await readLines(file, { size, offset, limit, signal });
      return {
        content: asText(bytes, path),
        start_line: offset,
        lines,
        size,
        ...(ended ? {} : { truncated: true, next_offset: offset + lines }),
      };
    }),
});

interface Range {
  size: number;
  offset: number;
  limit: number;
  signal: AbortSignal;
}

/** Reads whole lines from `offset` on, up to the limit and as many as fit. Memory stays bounded for any file size. */
async function readLines(file: FileHandle, { size, offset, limit, signal }: Range) {
  const start = await startOfLine(file, offset, signal);
  const wanted = Math.min(maxBytes, Math.max(0, size - start));
  const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, start);
  const read = buffer.subarray(0, bytesRead);
  const end = endOfLines(read, limit) ?? (start + bytesRead < size ? lastWhole(read) : bytesRead);
  const bytes = read.subarray(0, end);
  return { bytes, lines: countLines(bytes), ended: start + end >= size };
}

/** Returns where a line starts, or the end of the file if it has fewer lines. */
async function startOfLine(file: FileHandle, line: number, signal: AbortSignal): Promise<number> {
  let position = 0;
  const buffer = Buffer.allocUnsafe(line === 1 ? 0 : chunkBytes);
  for (let left = line - 1; left > 0;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, position);
    if (bytesRead === 0) return position;
    const end = endOfLines(buffer.subarray(0, bytesRead), left);
    if (end !== null) return position + end;
    left -= countFeeds(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
  return position;
}

/** Returns the position after the given number of line feeds; null if there are fewer. */
function endOfLines(bytes: Uint8Array, count: number): number | null {
  if (count > bytes.length) return null;
  let at = -1;
  for (let seen = 0; seen < count; seen += 1) {
    at = bytes.indexOf(lineFeed, at + 1);
    if (at === -1) return null;
  }
  return at + 1;
}

/** Returns the end of the last whole line or, in an overlong line, of the last whole character. */
function lastWhole(bytes: Buffer): number {
  const end = bytes.lastIndexOf(lineFeed);
  return end === -1 ? wholeCharacters(bytes).length : end + 1;
}

function countFeeds(bytes: Uint8Array): number {
  let feeds = 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) feeds += 1;
  return feeds;
}

function countLines(bytes: Uint8Array): number {
  return countFeeds(bytes) + (bytes.length > 0 && bytes.at(-1) !== lineFeed ? 1 : 0);
}

/** Drops an incomplete character at the end. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
