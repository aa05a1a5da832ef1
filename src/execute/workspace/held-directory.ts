import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  type Stats,
  statSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { relative, sep } from "node:path";

/** A file or directory held by a descriptor, which stays the same whatever happens to its path. */
export interface HeldEntry {
  /** A path for file system calls. Not for messages. */
  readonly self: Buffer;
  stat(): Stats;
  close(): void;
}

/**
 * A directory held by a descriptor. On Linux its entries are reached through the descriptor (/proc/self/fd), so nothing
 * outside is reached if another process replaces the directory, or one above it, with a symlink. Systems without
 * /proc/self/fd use the path, and only check beforehand that it is not a symlink.
 */
export interface HeldDirectory extends HeldEntry {
  at(name: Buffer): Buffer;
  entries(): Promise<Entry[]>;
  /** Opens a directory in this one. Fails with ENOTDIR for a symlink. */
  open(name: Buffer): HeldDirectory;
  /** Holds an entry of any type without opening it for reading. A symlink is held itself, not its target. */
  openEntry(name: Buffer): HeldEntry;
}

/** Names are bytes, because a name need not be valid UTF-8. */
export interface Entry {
  name: Buffer;
  isDirectory: boolean;
}

const { O_DIRECTORY, O_NOFOLLOW } = constants;
const hasDescriptorPaths = existsSync("/proc/self/fd");
/** Linux only, and missing in Node's constants. Needs no permission on the directory itself. */
const O_PATH = 0o10000000;
const slash = Buffer.from("/");

/** Opens `path` without following any symlink below `base`. `base` itself may be one. */
export function holdDirectory(base: string, path: string): HeldDirectory {
  const top = hold(Buffer.from(base), O_DIRECTORY);
  try {
    const parts = relative(base, path).split(sep);
    return openBelow(
      top,
      parts.filter((part) => part !== "").map((part) => Buffer.from(part)),
    );
  } finally {
    top.close();
  }
}

/** Opens a directory below `top`, or `top` itself again. Follows no symlink. */
export function openBelow(top: HeldDirectory, parts: readonly Buffer[]): HeldDirectory {
  let directory = top.open(Buffer.from("."));
  for (const part of parts) {
    const above = directory;
    try {
      directory = above.open(part);
    } finally {
      above.close();
    }
  }
  return directory;
}

/** Closes the entry afterwards. */
export async function whileHeld<H extends HeldEntry, T>(held: H, work: (held: H) => Promise<T>): Promise<T> {
  try {
    return await work(held);
  } finally {
    held.close();
  }
}

function hold(path: Buffer, flags: number): HeldDirectory {
  const held = holdEntry(path, flags);
  const at = (name: Buffer): Buffer => Buffer.concat([held.self, slash, name]);
  return {
    ...held,
    at,
    async entries() {
      const found = await readdir(held.self, { withFileTypes: true, encoding: "buffer" });
      return found.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
    },
    open: (name) => hold(at(name), O_DIRECTORY | O_NOFOLLOW),
    openEntry: (name) => holdEntry(at(name), O_NOFOLLOW),
  };
}

function holdEntry(path: Buffer, flags: number): HeldEntry {
  if (hasDescriptorPaths) {
    const fd = openSync(path, O_PATH | flags);
    return { self: Buffer.from(`/proc/self/fd/${fd}`), stat: () => fstatSync(fd), close: () => closeSync(fd) };
  }
  const stat = (): Stats => (flags & O_NOFOLLOW ? lstatSync(path) : statSync(path));
  const found = stat();
  if (flags & O_DIRECTORY && !found.isDirectory())
    throw Object.assign(new Error(`ENOTDIR: not a directory, ${path.toString()}`), { code: "ENOTDIR" });
  return { self: path, stat, close: () => undefined };
}

/** Lets the owner list and change the directory. If that is refused, the next access fails and says why. */
export function makeAccessible(directory: HeldDirectory): void {
  if ((directory.stat().mode & 0o700) === 0o700) return;
  try {
    chmodSync(directory.self, 0o700);
  } catch (error) {
    if (errorCode(error) !== "EPERM" && errorCode(error) !== "EROFS") throw error;
  }
}

export function errorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : null;
}
