import type { FileHandle } from "node:fs/promises";
import * as z from "zod";
import { decodeText, withFile } from "./file-content.ts";
import { defineFileTool } from "./file-tool.ts";

const lineFeed = 0x0a;
const chunkBytes = 256 * 1024;
/** The most bytes that one call returns. */
const maxBytes = 2 * 1024 * 1024;

export const readTool = defineFileTool({
  name: "file.read",
  description: "Read a file from the workspace",
  effect: "read",
  input: z.strictObject({
    path: z.string().describe("Path relative to the workspace"),
    offset: z.int().min(1).optional().describe("Line to start from (default: 1)"),
    limit: z.int().min(1).optional().describe("Maximum number of lines to read"),
  }),
  run: ({ path, offset = 1, limit = Infinity }, { workspace, signal }) =>
    withFile(workspace, path, async (file, size) => {
      const { bytes, lines, isAtEnd } = await readLines(file, { size, offset, limit, signal });
      return {
        content: decodeText(bytes, path),
        start_line: offset,
        lines,
        size,
        ...(isAtEnd ? {} : { truncated: true, next_offset: offset + lines }),
      };
    }),
});

interface Range {
  size: number;
  offset: number;
  limit: number;
  signal: AbortSignal;
}

/**
 * Reads whole lines, starting with line `offset`, up to `limit` lines and maxBytes. Uses bounded memory for any file
 * size.
 */
async function readLines(file: FileHandle, { size, offset, limit, signal }: Range) {
  const start = await findLineStart(file, offset, signal);
  const length = Math.min(maxBytes, Math.max(0, size - start));
  const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, start);
  const chunk = buffer.subarray(0, bytesRead);
  const end = findLineEnd(chunk, limit) ?? (start + bytesRead < size ? findCutPosition(chunk) : bytesRead);
  const bytes = chunk.subarray(0, end);
  return { bytes, lines: countLines(bytes), isAtEnd: start + end >= size };
}

/** Returns the position where a line starts, or the end of the file if it has fewer lines. */
async function findLineStart(file: FileHandle, line: number, signal: AbortSignal): Promise<number> {
  let position = 0;
  const buffer = Buffer.allocUnsafe(line === 1 ? 0 : chunkBytes);
  for (let remaining = line - 1; remaining > 0;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, position);
    if (bytesRead === 0) return position;
    const end = findLineEnd(buffer.subarray(0, bytesRead), remaining);
    if (end !== null) return position + end;
    remaining -= countFeeds(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
  return position;
}

/** Returns the position after `count` line feeds; null if `bytes` has fewer. */
function findLineEnd(bytes: Uint8Array, count: number): number | null {
  if (count > bytes.length) return null;
  let position = -1;
  for (let feeds = 0; feeds < count; feeds += 1) {
    position = bytes.indexOf(lineFeed, position + 1);
    if (position === -1) return null;
  }
  return position + 1;
}

/** Returns the end of the last whole line or, in an overlong line, of the last whole character. */
function findCutPosition(bytes: Buffer): number {
  const end = bytes.lastIndexOf(lineFeed);
  return end === -1 ? dropPartialCharacter(bytes).length : end + 1;
}

function countFeeds(bytes: Uint8Array): number {
  let feeds = 0;
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, end + 1)) feeds += 1;
  return feeds;
}

function countLines(bytes: Uint8Array): number {
  return countFeeds(bytes) + (bytes.length > 0 && bytes.at(-1) !== lineFeed ? 1 : 0);
}

/** Drops an incomplete UTF-8 character at the end. */
function dropPartialCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
