import { type Dir, type Dirent, lstat, promises, type Stats } from "node:fs";
import type { DiskUsage } from "../model/process.ts";

export interface MeasureOptions {
  roots: readonly string[];
  /** Directories to skip. */
  excluded: readonly string[];
  /** Also count bytes, which requires a stat of each entry. */
  withBytes: boolean;
  /** Called repeatedly. Returning true ends the walk early. */
  isEnough: (usage: DiskUsage) => boolean;
  signal: AbortSignal;
}

/**
 * Measures the contents of these directories. Works in batches, so that it does not delay other work. Does not follow links
 * or enter other file systems. Ignores entries that vanish or cannot be read.
 */
export async function measureDiskUsage({
  roots,
  excluded,
  withBytes,
  isEnough,
  signal,
}: MeasureOptions): Promise<DiskUsage> {
  const usage: DiskUsage = { bytes: 0, files: 0 };
  const addBytes = withBytes ? createByteCounter(usage) : () => undefined;
  const resolvedRoots = new Set(await Promise.all(roots.map(resolveRealPath)));
  // Each root is walked once, even if it is inside another root.
  const skipped = new Set([...resolvedRoots, ...(await Promise.all(excluded.map(resolveRealPath)))]);
  const isFinished = (): boolean => signal.aborted || isEnough(usage);

  for (const start of resolvedRoots) {
    const [root] = await lstatAll([toBytes(start)]);
    if (!root?.isDirectory()) continue;
    addBytes(root);
    const pending = [start];
    for (let directory = pending.pop(); directory !== undefined && !isFinished(); directory = pending.pop()) {
      for await (const entries of readBatches(directory)) {
        usage.files += entries.length;
        const paths = toPaths(withBytes ? entries : entries.filter((entry) => entry.isDirectory()), directory);
        const results = await lstatAll(paths.map(toBytes));
        results.forEach((stats, index) => {
          const path = paths[index]!;
          if (stats === null) return;
          if (skipped.has(path)) return void (usage.files -= 1);
          addBytes(stats);
          if (stats.isDirectory() && stats.dev === root.dev) pending.push(path);
        });
        if (isFinished()) break;
      }
    }
  }
  return usage;
}

/** Entries per batch. A batch keeps Node's file threads busy for about two milliseconds. */
const batchEntries = 256;

/** File names are bytes, not always valid text. Paths are stored as latin1, which represents any byte compactly. */
const toBytes = (path: string): Buffer => Buffer.from(path, "latin1");

function toPaths(entries: readonly Dirent[], directory: string): string[] {
  // Names are buffers because of the encoding passed to opendir.
  return entries.map(({ name }) => `${directory}/${(name as unknown as Buffer).toString("latin1")}`);
}

async function resolveRealPath(path: string): Promise<string> {
  try {
    return Buffer.from(await promises.realpath(path)).toString("latin1");
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return Buffer.from(path).toString("latin1");
  }
}

async function* readBatches(directory: string): AsyncGenerator<Dirent[]> {
  let listing: Dir | undefined;
  try {
    // Node accepts "buffer" here, but its types do not.
    listing = await promises.opendir(toBytes(directory), {
      encoding: "buffer" as BufferEncoding,
      bufferSize: batchEntries,
    });
    for (let batch = await readBatch(listing); batch.length > 0; batch = await readBatch(listing)) yield batch;
  } catch (error) {
    if (!isUnreadable(error)) throw error;
  } finally {
    await listing?.close();
  }
}

/** Uses callbacks, like `lstatAll`, because a promise per entry costs as much as the stat itself. */
function readBatch(listing: Dir): Promise<Dirent[]> {
  return new Promise((resolve, reject) => {
    const batch: Dirent[] = [];
    const next = (): void =>
      listing.read((error, entry) => {
        if (error) return reject(error);
        if (entry) batch.push(entry);
        if (entry && batch.length < batchEntries) next();
        else resolve(batch);
      });
    next();
  });
}

function lstatAll(paths: readonly Buffer[]): Promise<(Stats | null)[]> {
  return new Promise((resolve, reject) => {
    const results: (Stats | null)[] = paths.map(() => null);
    let pending = paths.length;
    if (pending === 0) resolve(results);
    paths.forEach((path, index) =>
      lstat(path, (error, stats) => {
        if (error && !isUnreadable(error)) reject(error);
        results[index] = error ? null : stats;
        pending -= 1;
        if (pending === 0) resolve(results);
      }),
    );
  });
}

/** Whether the entry is gone, was replaced, is not accessible, or has too long a path. */
function isUnreadable(error: unknown): boolean {
  return error instanceof Error && "code" in error && unreadableCodes.has(String(error.code));
}

const unreadableCodes = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ESTALE", "EACCES", "EPERM", "ENAMETOOLONG"]);

/** How many hard-linked files to remember. Further ones are counted once per name. */
const maxLinkedFiles = 100_000;

/** Counts allocated blocks: a sparse file uses less than its length. */
function createByteCounter(usage: DiskUsage): (stats: Stats) => void {
  const linkedFiles = new Set<string>();
  return (stats) => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const file = `${stats.dev}:${stats.ino}`;
      if (linkedFiles.has(file)) return;
      if (linkedFiles.size < maxLinkedFiles) linkedFiles.add(file);
    }
    usage.bytes += stats.blocks * 512;
  };
}
