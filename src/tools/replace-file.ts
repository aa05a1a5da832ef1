import { randomBytes } from "node:crypto";
import type { BigIntStats } from "node:fs";
import type { ConfinedDirectory } from "./confined-directory.ts";
import { errnoOf, ToolFailure } from "./tool-failure.ts";

interface Options {
  mode: number;
  /** The file as it was read: changed since then, it is left alone. */
  unchangedSince?: BigIntStats;
}

/** Readers see the old content or the new one, never a part; a failure leaves the old one. */
export async function replaceFile(
  folder: ConfinedDirectory,
  name: Buffer,
  bytes: Uint8Array,
  { mode, unchangedSince }: Options,
): Promise<void> {
  const aside = Buffer.from(`.drover-${randomBytes(8).toString("hex")}.tmp`);
  const file = await folder.create(aside, mode);
  try {
    try {
      await file.writeFile(bytes);
      // the umask narrowed what `create` asked for; a file that existed keeps its mode
      if (unchangedSince !== undefined || mode !== 0o666) await file.chmod(mode);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (unchangedSince !== undefined && !isSame(unchangedSince, await folder.stat(name)))
      throw new ToolFailure("changed_meanwhile", "The file was changed by someone else meanwhile. Read it again.");
    await folder.rename(aside, name);
  } catch (error) {
    await folder.remove(aside).catch((gone: unknown) => {
      if (errnoOf(gone) !== "ENOENT") throw gone;
    });
    throw error;
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs;
}
