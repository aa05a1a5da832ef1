import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
  statSync,
  unlinkSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { relative, sep } from "node:path";
import { O_PATH } from "../../process/working-directory.ts";

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
const slash = Buffer.from("/");

type OpenStep = (directory: HeldDirectory, name: Buffer) => HeldDirectory;
const openExisting: OpenStep = (directory, name) => directory.open(name);

/**
 * Opens `path` without following any symlink below `base`. `base` itself may be one. `step` opens each directory; by
 * default the directory must exist.
 */
export function holdDirectory(base: string, path: string, step: OpenStep = openExisting): HeldDirectory {
  const top = hold(Buffer.from(base), O_DIRECTORY);
  try {
    return openBelow(top, splitPath(relative(base, path), sep), step);
  } finally {
    top.close();
  }
}

/** Opens a directory below `top`, or `top` itself again. Follows no symlink. */
export function openBelow(top: HeldDirectory, parts: readonly Buffer[], step: OpenStep = openExisting): HeldDirectory {
  let directory = top.open(Buffer.from("."));
  for (const part of parts) {
    const parent = directory;
    try {
      directory = step(parent, part);
    } finally {
      parent.close();
    }
  }
  return directory;
}

export function splitPath(path: string, separator = "/"): Buffer[] {
  const parts = path.split(separator);
  return parts.filter((part) => part !== "").map((part) => Buffer.from(part));
}

/** Opens a directory, and creates it for its owner alone if it is missing. */
export const openOrCreate: OpenStep = (directory, name) => {
  try {
    mkdirSync(directory.at(name), { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
  return directory.open(name);
};

/** Other processes may keep putting something else in the directory's place. */
const maxReplacements = 20;

/** Opens a directory as `openOrCreate` does, and first removes anything else that has its name. */
export const replaceOrCreate: OpenStep = (directory, name) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return openOrCreate(directory, name);
    } catch (error) {
      if (!isReplaced(error) || attempt === maxReplacements) throw error;
      removeNonDirectory(directory, name);
    }
  }
};

/** Removes a file or a symlink. Leaves a directory, and does nothing if there is no such entry. */
export function removeNonDirectory(directory: HeldDirectory, name: Buffer): void {
  try {
    unlinkSync(directory.at(name));
  } catch (error) {
    if (!["ENOENT", "EISDIR"].includes(String(errorCode(error)))) throw error;
  }
}

/** Whether the entry vanished, or is a symlink or a file where a directory was expected. */
export function isReplaced(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP"].includes(String(errorCode(error)));
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
      const entries = await readdir(held.self, { withFileTypes: true, encoding: "buffer" });
      return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
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
  const entries = stat();
  if (flags & O_DIRECTORY && !entries.isDirectory())
    throw Object.assign(new Error(`ENOTDIR: not a directory, ${path.toString()}`), { code: "ENOTDIR" });
  return { self: path, stat, close: () => undefined };
}

/** Lets the owner list and change the directory. If that is refused, the next access fails and reports the reason. */
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
