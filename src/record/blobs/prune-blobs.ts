import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isSha256 } from "../../model/file.ts";
import { isErrno } from "../errno.ts";
import type { Engine } from "../engine.ts";
import { first, type Work } from "../query.ts";
import { toHostError } from "../sqlite/errors.ts";
import { blobsDirectory } from "../../model/state-layout.ts";
import { blobFile, partialNamePattern } from "./blobs.ts";
import { pruneUploads } from "./prune-uploads.ts";

/** Contents are stored before any row refers to them, so more recent contents may still be needed. */
const minAgeMs = 60 * 60 * 1000;

const selectUsed = `
  select exists (select 1 from files where sha256 = ?1) or exists (select 1 from uploads where sha256 = ?1) as used`;

/** Removes contents that no file or pending upload refers to, and partial files left by a crash. */
export async function pruneBlobs(
  { engine, directory }: { engine: Engine; directory: string },
  now: Date,
): Promise<{ blobs: number }> {
  const root = blobsDirectory(directory);
  const names = listDirectory(root);
  if (names.length === 0) return { blobs: 0 };
  await pruneUploads(engine);
  const cutoff = now.getTime() - minAgeMs;
  for (const name of names.filter((entry) => partialNamePattern.test(entry))) removeIfOld(join(root, name), cutoff);
  let blobs = 0;
  for (const name of names.filter((entry) => /^[0-9a-f]{2}$/.test(entry))) {
    for (const sha256 of listDirectory(join(root, name)).filter(isSha256)) {
      if (await engine.read(() => removeUnused(directory, sha256, cutoff))) blobs += 1;
    }
  }
  return { blobs };
}

/** SQLite runs the work synchronously, so no put of this process can run between the check and the removal. */
function* removeUnused(directory: string, sha256: string, cutoff: number): Work<boolean> {
  const [row] = yield first(selectUsed, sha256);
  return row?.["used"] !== 1 && removeIfOld(blobFile(directory, sha256), cutoff);
}

function removeIfOld(file: string, cutoff: number): boolean {
  try {
    if (statSync(file).mtimeMs >= cutoff) return false;
    rmSync(file);
    return true;
  } catch (error) {
    // Another process removed it.
    if (isErrno(error, "ENOENT")) return false;
    throw toHostError(error, file);
  }
}

function listDirectory(root: string): string[] {
  try {
    return readdirSync(root);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw toHostError(error, root);
  }
}
