import { constants, type Dirent, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, readlink, rename, unlink } from "node:fs/promises";

/**
 * A folder held open, and what lies directly in it. On Linux every name is looked up through the held descriptor
 * (/proc/self/fd), whatever has been put in the place of the folder's path meanwhile, and no link is followed: nothing
 * outside is ever reached. Elsewhere paths have to do: what was opened is compared with what the path shows, which a
 * link swapped in and out at the right moments could still pass.
 */
export interface ConfinedFolder {
  /** At most `together` names at a time. Names are bytes: not every name is text. */
  entries(together: number): AsyncIterable<Entry[]>;
  look(name: Buffer): ReturnType<typeof lookAt>;
  folder(name: Buffer): Promise<ConfinedFolder>;
  /** A regular file that has no other name; anything else is refused. */
  file(name: Buffer): Promise<FileHandle>;
  /** The target of a symbolic link. */
  link(name: Buffer): Promise<Buffer>;
  /** A new, empty file; fails where the name is taken. */
  create(name: Buffer, mode: number): Promise<FileHandle>;
  makeFolder(name: Buffer): Promise<void>;
  /** Within this folder, replacing what has the new name. */
  rename(from: Buffer, to: Buffer): Promise<void>;
  remove(name: Buffer): Promise<void>;
  close(): Promise<void>;
}

export interface Entry {
  name: Buffer;
  kind: "file" | "folder" | "link" | "other";
}

/** What was found there is not what is there now. */
export class Exchanged extends Error {
  readonly code = "EXCHANGED";
  constructor() {
    super("It was exchanged for something else while it was looked at.");
  }
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const hasProc = existsSync("/proc/self/fd");

export function openConfined(path: string): Promise<ConfinedFolder> {
  return openFolder(Buffer.from(path), async () => undefined);
}

async function openFolder(path: Buffer, checkAbove: () => Promise<void>): Promise<ConfinedFolder> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const own = hasProc ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
  const at = (name: Buffer): Buffer => Buffer.concat([own, Buffer.from("/"), name]);
  const check = async (): Promise<void> => {
    if (hasProc) return;
    const [held, shown] = await Promise.all([handle.stat({ bigint: true }), lstat(path, { bigint: true })]);
    if (held.ino !== shown.ino || held.dev !== shown.dev) throw new Exchanged();
    await checkAbove();
  };
  /** A path-based change can only be checked before it is made; through a descriptor there is nothing to check. */
  const checked = async <T>(act: () => Promise<T>): Promise<T> => {
    await check();
    return act();
  };
  return {
    async *entries(together) {
      // a letter for each byte, which costs half of what a Buffer for each name does
      const listing = await opendir(own, { encoding: "latin1", bufferSize: 512 });
      try {
        for (;;) {
          const found = await readSome(listing, together);
          if (found.length === 0) return;
          yield found;
        }
      } finally {
        await listing.close();
      }
    },
    look: (name) => lookAt(at(name)),
    async folder(name) {
      const inner = await openFolder(at(name), check);
      return closedOnFault(inner, check);
    },
    async file(name) {
      // nothing but a regular file is opened at all: opening a device may do something
      if (!isPlain(await lookAt(at(name)))) throw new Exchanged();
      const file = await open(at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      return closedOnFault(file, async () => {
        if (!isPlain(await file.stat({ bigint: true }))) throw new Exchanged();
        await check();
      });
    },
    link: (name) => readlink(at(name), { encoding: "buffer" }),
    create: (name, mode) => checked(() => open(at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)),
    makeFolder: (name) => checked(() => mkdir(at(name))),
    rename: (from, to) => checked(() => rename(at(from), at(to))),
    remove: (name) => checked(() => unlink(at(name))),
    close: () => handle.close(),
  };
}

/** With callbacks: a promise for each name costs as much as looking at the file. */
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

function lookAt(path: Buffer) {
  return lstat(path, { bigint: true });
}

function isPlain(seen: { isFile(): boolean; nlink: bigint }): boolean {
  return seen.isFile() && seen.nlink === 1n;
}

async function closedOnFault<T extends { close(): Promise<void> }>(opened: T, check: () => Promise<void>): Promise<T> {
  try {
    await check();
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}
