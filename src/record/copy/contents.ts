import { createHash } from "node:crypto";
import { isSha256 } from "../../model/file.ts";
import { all, type Work } from "../query.ts";
import { createChangedContentError, toCopyError, createDifferenceError } from "./errors.ts";
import { maxPageRows, type WritableRecord, type ReadableRecord } from "./record-copy.ts";

export interface ContentCounts {
  contents: number;
  bytes: number;
  /** Contents that files refer to but the source no longer has. */
  missing: number;
}

/** Copies all contents that a file or a pending upload refers to. Unreferenced contents are not copied. */
export async function copyContents(
  from: ReadableRecord,
  to: WritableRecord,
  onProgress: (done: number) => void,
): Promise<ContentCounts> {
  const copied = { contents: 0, bytes: 0, missing: 0 };
  for await (const sha256 of readHashes(from)) {
    const pieces = await from.openContent(sha256);
    if (pieces === null) {
      copied.missing += 1;
      continue;
    }
    try {
      await to.addContent(sha256, checkPieces(from.name, sha256, pieces));
    } catch (error) {
      throw toCopyError(`The contents ${sha256}`, error);
    }
    copied.contents += 1;
    onProgress(copied.contents);
  }
  await to.flush();
  return copied;

  /** Rejects contents that have changed since they were stored. */
  async function* checkPieces(
    name: string,
    sha256: string,
    pieces: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    for await (const bytes of pieces) {
      hash.update(bytes);
      copied.bytes += bytes.length;
      yield bytes;
    }
    if (hash.digest("hex") !== sha256) throw createChangedContentError(name, sha256);
  }
}

/** Contents checked at the same time. */
const parallelChecks = 16;

/** Reads what was copied and hashes it again. */
export async function checkContents(
  record: ReadableRecord,
  copied: ContentCounts,
  onProgress: (done: number) => void,
): Promise<void> {
  let intactCount = 0;
  let batch: string[] = [];
  for await (const sha256 of readHashes(record)) {
    batch.push(sha256);
    if (batch.length === parallelChecks) await checkBatch();
  }
  await checkBatch();
  if (intactCount !== copied.contents)
    throw createDifferenceError(
      record.name,
      Math.abs(intactCount - copied.contents),
      `${intactCount} contents instead of ${copied.contents}`,
    );

  async function checkBatch(): Promise<void> {
    const results = await Promise.all(batch.map((sha256) => isIntact(record, sha256)));
    intactCount += results.filter(Boolean).length;
    batch = [];
    onProgress(intactCount);
  }
}

async function isIntact(record: ReadableRecord, sha256: string): Promise<boolean> {
  const pieces = await record.openContent(sha256);
  if (pieces === null) return false;
  const hash = createHash("sha256");
  for await (const bytes of pieces) hash.update(bytes);
  if (hash.digest("hex") !== sha256) throw createDifferenceError(record.name, 1, `the contents ${sha256}`);
  return true;
}

async function* readHashes(record: ReadableRecord): AsyncGenerator<string> {
  for (let after = ""; ;) {
    const page = await record.runWork(readHashesAfter(after));
    for (const sha256 of page) {
      // The hash becomes a file name.
      if (!isSha256(sha256)) throw createChangedContentError(record.name, sha256.slice(0, 64));
      yield sha256;
    }
    if (page.length === 0) return;
    after = page.at(-1) ?? after;
  }
}

const selectFileHashes = `select distinct sha256 from files where sha256 > ? order by sha256 limit ?`;
const selectUploadHashes = `select distinct sha256 from uploads where sha256 > ? order by sha256 limit ?`;

/** Merges the first hashes of both tables. No later hash sorts before the last one returned. */
function* readHashesAfter(after: string): Work<string[]> {
  const rows = [
    ...(yield all(selectFileHashes, after, maxPageRows)),
    ...(yield all(selectUploadHashes, after, maxPageRows)),
  ];
  const hashes = new Set(rows.map((row) => String(row["sha256"])));
  return [...hashes].sort().slice(0, maxPageRows);
}
