import { createHash } from "node:crypto";
import { isSha256 } from "../../model/file.ts";
import { all, type Work } from "../query.ts";
import { damagedContent, notCopied, copyDiffers } from "./errors.ts";
import { mostRows, type TargetRecord, type SourceRecord } from "./record-copy.ts";

export interface CopiedContents {
  contents: number;
  bytes: number;
  /** Contents that files refer to but that were already lost. */
  missing: number;
}

/** Copies all contents that a file or a pending upload refers to. Unreferenced contents stay behind. */
export async function copyContents(
  from: SourceRecord,
  to: TargetRecord,
  progress: (done: number) => void,
): Promise<CopiedContents> {
  const copied = { contents: 0, bytes: 0, missing: 0 };
  for await (const sha256 of hashesIn(from)) {
    const pieces = await from.content(sha256);
    if (pieces === null) {
      copied.missing += 1;
      continue;
    }
    try {
      await to.addContent(sha256, counted(from.name, sha256, pieces));
    } catch (error) {
      throw notCopied(`The contents ${sha256}`, error);
    }
    copied.contents += 1;
    progress(copied.contents);
  }
  await to.settled();
  return copied;

  /** Rejects contents that were changed since they were stored. */
  async function* counted(name: string, sha256: string, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    for await (const bytes of pieces) {
      hash.update(bytes);
      copied.bytes += bytes.length;
      yield bytes;
    }
    if (hash.digest("hex") !== sha256) throw damagedContent(name, sha256);
  }
}

/** Checked in parallel. */
const checksInParallel = 16;

/** Reads what was copied and hashes it again. */
export async function checkContents(
  record: SourceRecord,
  copied: CopiedContents,
  progress: (done: number) => void,
): Promise<void> {
  let found = 0;
  let waiting: string[] = [];
  for await (const sha256 of hashesIn(record)) {
    waiting.push(sha256);
    if (waiting.length === checksInParallel) await checkWaiting();
  }
  await checkWaiting();
  if (found !== copied.contents)
    throw copyDiffers(
      record.name,
      Math.abs(found - copied.contents),
      `${found} contents instead of ${copied.contents}`,
    );

  async function checkWaiting(): Promise<void> {
    const there = await Promise.all(waiting.map((sha256) => isWhole(record, sha256)));
    found += there.filter(Boolean).length;
    waiting = [];
    progress(found);
  }
}

async function isWhole(record: SourceRecord, sha256: string): Promise<boolean> {
  const pieces = await record.content(sha256);
  if (pieces === null) return false;
  const hash = createHash("sha256");
  for await (const bytes of pieces) hash.update(bytes);
  if (hash.digest("hex") !== sha256) throw copyDiffers(record.name, 1, `the contents ${sha256}`);
  return true;
}

async function* hashesIn(record: SourceRecord): AsyncGenerator<string> {
  for (let after = ""; ;) {
    const page = await record.carryOut(hashesAfter(after));
    for (const sha256 of page) {
      // It becomes a file name.
      if (!isSha256(sha256)) throw damagedContent(record.name, sha256.slice(0, 64));
      yield sha256;
    }
    if (page.length === 0) return;
    after = page.at(-1) ?? after;
  }
}

const ofFiles = `select distinct sha256 from files where sha256 > ? order by sha256 limit ?`;
const ofUploads = `select distinct sha256 from uploads where sha256 > ? order by sha256 limit ?`;

/** Merges the first hashes of both tables. No later hash sorts before the last one returned. */
function* hashesAfter(after: string): Work<string[]> {
  const rows = [...(yield all(ofFiles, after, mostRows)), ...(yield all(ofUploads, after, mostRows))];
  const hashes = new Set(rows.map((row) => String(row["sha256"])));
  return [...hashes].sort().slice(0, mostRows);
}
