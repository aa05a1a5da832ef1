import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Blobs, isSha256 } from "../../model/file.ts";
import { blobsDirectory } from "../../model/state-layout.ts";
import { isErrno } from "../errno.ts";
import { toHostError } from "../sqlite/errors.ts";
import { sync } from "../sync.ts";

export function blobFile(directory: string, sha256: string): string {
  return join(blobsDirectory(directory), sha256.slice(0, 2), sha256);
}

/** The names of files that are being written. prune-blobs.ts removes those that a crash left behind. */
export const partialNamePattern = /^\.part-[0-9a-f]{16}$/;

/**
 * Writes the content into a temporary file, hashes it on the way, and renames it to its hash once it is complete and durable.
 * Reads everything even if the content is already stored, because an upload proves that the sender has the bytes.
 */
export async function putBlob(
  directory: string,
  content: AsyncIterable<Uint8Array>,
  expected: { sha256: string; size: number },
  signal: AbortSignal,
): ReturnType<Blobs["put"]> {
  if (!isSha256(expected.sha256)) return "mismatch";
  const target = blobFile(directory, expected.sha256);
  const partialFile = join(blobsDirectory(directory), `.part-${randomBytes(8).toString("hex")}`);
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    const handle = await open(partialFile, "wx", 0o600);
    try {
      if (!(await writeContent(handle, content, expected, signal))) return "mismatch";
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Rename and sync synchronously, so that pruning in this process cannot run in between.
    renameSync(partialFile, target);
    sync(dirname(target));
    return "stored";
  } catch (error) {
    throw toHostError(error, partialFile);
  } finally {
    rmSync(partialFile, { force: true });
  }
}

/** Returns false as soon as the content cannot match what was announced. */
async function writeContent(
  handle: FileHandle,
  content: AsyncIterable<Uint8Array>,
  { sha256, size }: { sha256: string; size: number },
  signal: AbortSignal,
): Promise<boolean> {
  const hash = createHash("sha256");
  let written = 0;
  for await (const bytes of content) {
    signal.throwIfAborted();
    written += bytes.length;
    if (written > size) return false;
    hash.update(bytes);
    await handle.writeFile(bytes);
  }
  signal.throwIfAborted();
  return written === size && hash.digest("hex") === sha256;
}

export async function openBlob(directory: string, sha256: string): ReturnType<Blobs["open"]> {
  if (!isSha256(sha256)) return null;
  const file = blobFile(directory, sha256);
  try {
    const handle = await open(file, "r");
    try {
      const { size } = await handle.stat();
      return { size, stream: handle.createReadStream() };
    } catch (error) {
      await handle.close();
      throw error;
    }
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw toHostError(error, file);
  }
}
