import { constants, type Dirent, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, readlink, realpath, rename, unlink } from "node:fs/promises";

/**
 * An open directory and access to its entries. On Linux every name is resolved through the open descriptor
 * (/proc/self/fd) and no link is followed, so access stays inside even if the directory's path is replaced. On
 * other systems the opened file is compared with the file at the path. A link that is swapped in and out at the right
 * moments can defeat that check.
 */
export interface ConfinedDirectory {
  /** Yields at most `count` entries at a time. Names are bytes, because not every name is valid text. */
  entries(count: number): AsyncIterable<Entry[]>;
  stat(name: Buffer): ReturnType<typeof lstatEntry>;
  openDirectory(name: Buffer): Promise<ConfinedDirectory>;
  /** Opens a regular file without hard links; rejects anything else. */
  openFile(name: Buffer): Promise<FileHandle>;
  /** Returns the target of a symbolic link. */
  readLink(name: Buffer): Promise<Buffer>;
  /** Creates an empty file; fails if the name is taken. */
  create(name: Buffer, mode: number): Promise<FileHandle>;
  makeDirectory(name: Buffer, mode?: number): Promise<void>;
  /** Renames within this directory, replacing any file with the new name. */
  rename(from: Buffer, to: Buffer): Promise<void>;
  remove(name: Buffer): Promise<void>;
  realPath(): Promise<string>;
  close(): Promise<void>;
}

export interface Entry {
  name: Buffer;
  kind: "file" | "folder" | "link" | "other";
}

/** A file or directory was replaced while it was being accessed. */
export class EntryReplacedError extends Error {
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

/** `path` is a real path. Fails if another process has since replaced the directory, or one above it, with a link. */
export async function openRealDirectory(path: string): Promise<ConfinedDirectory> {
  const directory = await openConfinedDirectory(path);
  return closeOnError(directory, async () => {
    if ((await directory.realPath()) !== path) throw new EntryReplacedError();
  });
}

async function openDirectory(path: Buffer, checkParent: () => Promise<void>): Promise<ConfinedDirectory> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const basePath = hasProc ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
  const toPath = (name: Buffer): Buffer => Buffer.concat([basePath, Buffer.from("/"), name]);
  const check = async (): Promise<void> => {
    if (hasProc) return;
    const [opened, current] = await Promise.all([handle.stat({ bigint: true }), lstat(path, { bigint: true })]);
    if (opened.ino !== current.ino || opened.dev !== current.dev) throw new EntryReplacedError();
    await checkParent();
  };
  /** Without /proc, names are resolved by path, so the path is checked before each change. */
  const checkThen = async <T>(act: () => Promise<T>): Promise<T> => {
    await check();
    return act();
  };
  return {
    async *entries(count) {
      // latin1 keeps every byte and costs half as much as a Buffer for each name.
      const listing = await opendir(basePath, { encoding: "latin1", bufferSize: 512 });
      try {
        for (;;) {
          const batch = await readBatch(listing, count);
          if (batch.length === 0) return;
          yield batch;
        }
      } finally {
        await listing.close();
      }
    },
    stat: (name) => lstatEntry(toPath(name)),
    async openDirectory(name) {
      const inner = await openDirectory(toPath(name), check);
      return closeOnError(inner, check);
    },
    async openFile(name) {
      // Check before opening, because opening a device can have side effects.
      if (!isPlain(await lstatEntry(toPath(name)))) throw new EntryReplacedError();
      const file = await open(toPath(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      return closeOnError(file, async () => {
        if (!isPlain(await file.stat({ bigint: true }))) throw new EntryReplacedError();
        await check();
      });
    },
    readLink: (name) => readlink(toPath(name), { encoding: "buffer" }),
    create: (name, mode) => checkThen(() => open(toPath(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)),
    makeDirectory: (name, mode = 0o777) => checkThen(() => mkdir(toPath(name), mode)),
    rename: (from, to) => checkThen(() => rename(toPath(from), toPath(to))),
    remove: (name) => checkThen(() => unlink(toPath(name))),
    realPath: () => (hasProc ? readlink(basePath, "utf8") : realpath(path)),
    close: () => handle.close(),
  };
}

/** Uses callbacks, because a promise for each name costs as much as reading it. */
function readBatch(listing: Awaited<ReturnType<typeof opendir>>, count: number): Promise<Entry[]> {
  return new Promise((resolve, reject) => {
    const batch: Entry[] = [];
    const readNext = (): void =>
      listing.read((error, entry) => {
        if (error) return reject(error);
        if (entry) batch.push({ name: Buffer.from(entry.name, "latin1"), kind: toKind(entry) });
        if (entry && batch.length < count) readNext();
        else resolve(batch);
      });
    readNext();
  });
}

function toKind(entry: Dirent): Entry["kind"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "other";
}

function lstatEntry(path: Buffer) {
  return lstat(path, { bigint: true });
}

function isPlain(stats: { isFile(): boolean; nlink: bigint }): boolean {
  return stats.isFile() && stats.nlink === 1n;
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
