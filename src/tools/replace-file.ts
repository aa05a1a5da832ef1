import { randomBytes } from "node:crypto";
import type { BigIntStats } from "node:fs";
import type { ConfinedDirectory } from "./confined-directory.ts";
import { getErrno, ToolFailure } from "./tool-failure.ts";

interface Options {
  mode: number;
  /** The file's stats when it was read. If it has changed since, it is not replaced. */
  unchangedSince?: BigIntStats;
}

/** Replaces a file atomically. If this fails, the file keeps its old content. */
export async function replaceFile(
  directory: ConfinedDirectory,
  name: Buffer,
  bytes: Uint8Array,
  { mode, unchangedSince }: Options,
): Promise<void> {
  const temporary = Buffer.from(`.drover-${randomBytes(8).toString("hex")}.tmp`);
  const file = await directory.create(temporary, mode);
  try {
    try {
      await file.writeFile(bytes);
      // `create` applies the umask, but an existing file keeps its mode.
      if (unchangedSince !== undefined || mode !== 0o666) await file.chmod(mode);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (unchangedSince !== undefined && !isSame(unchangedSince, await directory.stat(name)))
      throw new ToolFailure("changed_meanwhile", "The file has changed since it was read. Read it again.");
    await directory.rename(temporary, name);
  } catch (error) {
    await directory.remove(temporary).catch((removeError: unknown) => {
      if (getErrno(removeError) !== "ENOENT") throw removeError;
    });
    throw error;
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs;
}
