import { type Dir, type Dirent, lstat, promises, type Stats } from "node:fs";
import type { DiskUsage } from "../model/process.ts";

export interface MeasureOptions {
  roots: readonly string[];
  /** Directories to skip. */
  except: readonly string[];
  /** Also count bytes, which requires a stat of each entry. */
  withBytes: boolean;
  /** Called repeatedly. Returning true ends the walk. */
  enough: (held: DiskUsage) => boolean;
  signal: AbortSignal;
}

/**
 * Measures the contents of these directories. Works in slices, so that other work is not delayed. Does not follow links
 * or enter other file systems. Ignores entries that vanish meanwhile or cannot be read.
 */
export async function measureDiskUsage({
  roots,
  except,
  withBytes,
  enough,
  signal,
}: MeasureOptions): Promise<DiskUsage> {
  const held: DiskUsage = { bytes: 0, files: 0 };
  const addBytes = withBytes ? byteCounter(held) : () => undefined;
  const starts = new Set(await Promise.all(roots.map(realOf)));
  // each root is walked separately, even if one is inside another
  const passedOver = new Set([...starts, ...(await Promise.all(except.map(realOf)))]);
  const isOver = (): boolean => signal.aborted || enough(held);

  for (const start of starts) {
    const [root] = await lookAtAll([bytesOf(start)]);
    if (!root?.isDirectory()) continue;
    addBytes(root);
    const waiting = [start];
    for (let folder = waiting.pop(); folder !== undefined && !isOver(); folder = waiting.pop()) {
      for await (const entries of slicesOf(folder)) {
        held.files += entries.length;
        const paths = pathsOf(withBytes ? entries : entries.filter((entry) => entry.isDirectory()), folder);
        const seen = await lookAtAll(paths.map(bytesOf));
        seen.forEach((stats, at) => {
          const path = paths[at]!;
          if (stats === null) return;
          if (passedOver.has(path)) return void (held.files -= 1);
          addBytes(stats);
          if (stats.isDirectory() && stats.dev === root.dev) waiting.push(path);
        });
        if (isOver()) break;
      }
    }
  }
  return held;
}

/** Entries per slice. A slice keeps Node's file threads busy for about two milliseconds. */
const sliceEntries = 256;

/** File names are bytes, not always valid text. Paths are stored as latin1, which represents any byte compactly. */
const bytesOf = (path: string): Buffer => Buffer.from(path, "latin1");

function pathsOf(entries: readonly Dirent[], folder: string): string[] {
  // names are buffers because of the encoding passed to opendir
  return entries.map(({ name }) => `${folder}/${(name as unknown as Buffer).toString("latin1")}`);
}

async function realOf(path: string): Promise<string> {
  try {
    return Buffer.from(await promises.realpath(path)).toString("latin1");
  } catch (error) {
    if (!isUnseen(error)) throw error;
    return Buffer.from(path).toString("latin1");
  }
}

async function* slicesOf(folder: string): AsyncGenerator<Dirent[]> {
  let listing: Dir | undefined;
  try {
    // Node accepts "buffer" here, but its types do not
    listing = await promises.opendir(bytesOf(folder), {
      encoding: "buffer" as BufferEncoding,
      bufferSize: sliceEntries,
    });
    for (let slice = await readSlice(listing); slice.length > 0; slice = await readSlice(listing)) yield slice;
  } catch (error) {
    if (!isUnseen(error)) throw error;
  } finally {
    await listing?.close();
  }
}

/** Uses callbacks, like `lookAtAll`, because a promise per entry costs as much as the stat itself. */
function readSlice(listing: Dir): Promise<Dirent[]> {
  return new Promise((resolve, reject) => {
    const slice: Dirent[] = [];
    const next = (): void =>
      listing.read((error, entry) => {
        if (error) return reject(error);
        if (entry) slice.push(entry);
        if (entry && slice.length < sliceEntries) next();
        else resolve(slice);
      });
    next();
  });
}

function lookAtAll(paths: readonly Buffer[]): Promise<(Stats | null)[]> {
  return new Promise((resolve, reject) => {
    const seen: (Stats | null)[] = paths.map(() => null);
    let missing = paths.length;
    if (missing === 0) resolve(seen);
    paths.forEach((path, at) =>
      lstat(path, (error, stats) => {
        if (error && !isUnseen(error)) reject(error);
        seen[at] = error ? null : stats;
        missing -= 1;
        if (missing === 0) resolve(seen);
      }),
    );
  });
}

/** The entry is gone, was replaced, is not accessible, or has too long a path. */
function isUnseen(error: unknown): boolean {
  return error instanceof Error && "code" in error && unseen.has(String(error.code));
}

const unseen = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ESTALE", "EACCES", "EPERM", "ENAMETOOLONG"]);

/** How many hard-linked files to remember. Further ones are counted once per name. */
const maxLinked = 100_000;

/** Counts allocated blocks: a sparse file uses less than its length. */
function byteCounter(held: DiskUsage): (stats: Stats) => void {
  const linked = new Set<string>();
  return (stats) => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const file = `${stats.dev}:${stats.ino}`;
      if (linked.has(file)) return;
      if (linked.size < maxLinked) linked.add(file);
    }
    held.bytes += stats.blocks * 512;
  };
}
