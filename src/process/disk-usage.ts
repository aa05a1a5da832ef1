import { type Dir, type Dirent, lstat, promises, type Stats } from "node:fs";
import type { DiskUsage } from "../model/process.ts";

export interface MeasureOptions {
  roots: readonly string[];
  /** Folders that are passed over where the walk meets them. */
  except: readonly string[];
  /** Sizes cost a look at each entry. */
  withBytes: boolean;
  /** Asked again and again; true ends the walk. */
  enough: (held: DiskUsage) => boolean;
  signal: AbortSignal;
}

/**
 * What lies in these folders, as far as they were walked. By slices, so that nobody waits behind it. No link is
 * followed and no other file system entered; what vanishes meanwhile, or may not be looked at, is not there.
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
  // each root is walked for itself, also where one lies in another
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

/** So many entries are looked at together: two milliseconds for the threads that all work on files shares. */
const sliceEntries = 256;

/** Names are bytes and not always text: paths are kept as latin1, which holds any byte and takes the least room. */
const bytesOf = (path: string): Buffer => Buffer.from(path, "latin1");

function pathsOf(entries: readonly Dirent[], folder: string): string[] {
  // by the encoding that it was opened with
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
    // as bytes: Node's types know the option's text forms alone
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

/** With callbacks, here and below: a promise for each entry costs as much as looking at it. */
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

/** Gone, exchanged for something else, closed to us, or out of a path's reach. */
function isUnseen(error: unknown): boolean {
  return error instanceof Error && "code" in error && unseen.has(String(error.code));
}

const unseen = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ESTALE", "EACCES", "EPERM", "ENAMETOOLONG"]);

/** Of files with several names so many are remembered; any more count with each name. */
const mostLinked = 100_000;

/** As the file system gives them out: a file with holes holds less than its length. */
function byteCounter(held: DiskUsage): (stats: Stats) => void {
  const linked = new Set<string>();
  return (stats) => {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const file = `${stats.dev}:${stats.ino}`;
      if (linked.has(file)) return;
      if (linked.size < mostLinked) linked.add(file);
    }
    held.bytes += stats.blocks * 512;
  };
}
