import { constants, type Dirent, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, readlink, rename, unlink } from "node:fs/promises";

/**
 * An open directory and access to its entries. On Linux every name is resolved through the open descriptor
 * (/proc/self/fd) and no link is followed, so nothing outside is reached even if the directory's path is replaced. On
 * other systems the opened file is compared with the one at the path, which a link swapped in and out at the right
 * moments can still pass.
 */
export interface ConfinedDirectory {
  /** Yields at most `count` entries at a time. Names are bytes, because not every name is valid text. */
  entries(count: number): AsyncIterable<Entry[]>;
  stat(name: Buffer): ReturnType<typeof statOf>;
  directory(name: Buffer): Promise<ConfinedDirectory>;
  /** Opens a regular file with a single name; refuses anything else. */
  file(name: Buffer): Promise<FileHandle>;
  /** Returns the target of a symbolic link. */
  link(name: Buffer): Promise<Buffer>;
  /** Creates an empty file; fails if the name is taken. */
  create(name: Buffer, mode: number): Promise<FileHandle>;
  makeDirectory(name: Buffer): Promise<void>;
  /** Renames within this directory, replacing any file with the new name. */
  rename(from: Buffer, to: Buffer): Promise<void>;
  remove(name: Buffer): Promise<void>;
  close(): Promise<void>;
}

export interface Entry {
  name: Buffer;
  kind: "file" | "folder" | "link" | "other";
}

/** A file or directory was replaced while it was being accessed. */
export class ReplacedError extends Error {
  readonly code = "EXCHANGED";
  constructor() {
    super("The file was replaced while it was being accessed.");
  }
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const hasProc = existsSync("/proc/self/fd");

export function openConfinedDirectory(path: string): Promise<ConfinedDirectory> {
  return openDirectory(Buffer.from(path), async () => undefined);
}

async function openDirectory(path: Buffer, checkParent: () => Promise<void>): Promise<ConfinedDirectory> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const own = hasProc ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
  const at = (name: Buffer): Buffer => Buffer.concat([own, Buffer.from("/"), name]);
  const check = async (): Promise<void> => {
    if (hasProc) return;
    const [opened, current] = await Promise.all([handle.stat({ bigint: true }), lstat(path, { bigint: true })]);
    if (opened.ino !== current.ino || opened.dev !== current.dev) throw new ReplacedError();
    await checkParent();
  };
  /** A change by path can only be checked in advance. A change through a descriptor needs no check. */
  const checked = async <T>(act: () => Promise<T>): Promise<T> => {
    await check();
    return act();
  };
  return {
    async *entries(count) {
      // latin1 keeps every byte and costs half as much as a Buffer for each name
      const listing = await opendir(own, { encoding: "latin1", bufferSize: 512 });
      try {
        for (;;) {
          const found = await readSome(listing, count);
          if (found.length === 0) return;
          yield found;
        }
      } finally {
        await listing.close();
      }
    },
    stat: (name) => statOf(at(name)),
    async directory(name) {
      const inner = await openDirectory(at(name), check);
      return closeOnError(inner, check);
    },
    async file(name) {
      // check before opening: opening a device can have side effects
      if (!isPlain(await statOf(at(name)))) throw new ReplacedError();
      const file = await open(at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      return closeOnError(file, async () => {
        if (!isPlain(await file.stat({ bigint: true }))) throw new ReplacedError();
        await check();
      });
    },
    link: (name) => readlink(at(name), { encoding: "buffer" }),
    create: (name, mode) => checked(() => open(at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)),
    makeDirectory: (name) => checked(() => mkdir(at(name))),
    rename: (from, to) => checked(() => rename(at(from), at(to))),
    remove: (name) => checked(() => unlink(at(name))),
    close: () => handle.close(),
  };
}

/** Uses callbacks, because a promise for each name costs as much as the stat itself. */
function readSome(listing: Awaited<ReturnType<typeof opendir>>, count: number): Promise<Entry[]> {
  return new Promise((resolve, reject) => {
    const found: Entry[] = [];
    const next = (): void =>
      listing.read((error, entry) => {
        if (error) return reject(error);
        if (entry) found.push({ name: Buffer.from(entry.name, "latin1"), kind: kindOf(entry) });
        if (entry && found.length < count) next();
        else resolve(found);
      });
    next();
  });
}

function kindOf(entry: Dirent): Entry["kind"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "other";
}

function statOf(path: Buffer) {
  return lstat(path, { bigint: true });
}

function isPlain(seen: { isFile(): boolean; nlink: bigint }): boolean {
  return seen.isFile() && seen.nlink === 1n;
}

async function closeOnError<T extends { close(): Promise<void> }>(opened: T, check: () => Promise<void>): Promise<T> {
  try {
    await check();
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}
