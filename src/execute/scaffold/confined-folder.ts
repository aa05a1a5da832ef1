import { constants, type Dir, existsSync } from "node:fs";
import { type FileHandle, lstat, open, opendir } from "node:fs/promises";

/**
 * A folder held open, and what lies directly in it. On Linux a name is looked up in the folder that is held, by
 * /proc/self/fd, whatever has been put in the place of its path meanwhile, and no link is followed: nothing that
 * is reached lies outside. Elsewhere paths have to do: what was opened is compared with what the path shows, which
 * a link that is swapped in and out at the right moments could still pass.
 */
export interface ConfinedFolder {
  /** Names, at most so many at a time. They are bytes: not every one is text. */
  entries(together: number): AsyncIterable<Buffer[]>;
  look(name: Buffer): ReturnType<typeof lookAt>;
  folder(name: Buffer): Promise<ConfinedFolder>;
  /** A regular file that has no other name; anything else is refused. */
  file(name: Buffer): Promise<FileHandle>;
  close(): Promise<void>;
}

/** What was found there is not what is there now. */
class Exchanged extends Error {
  readonly code = "EXCHANGED";
  constructor() {
    super("It was exchanged for something else while it was looked at.");
  }
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
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
  return {
    async *entries(together) {
      // as bytes: Node's types know the option's text forms alone
      const listing = await opendir(own, { encoding: "buffer" as BufferEncoding, bufferSize: 512 });
      try {
        for (;;) {
          const names = await readNames(listing, together);
          if (names.length === 0) return;
          yield names;
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
    close: () => handle.close(),
  };
}

/** With callbacks: a promise for each name costs as much as looking at the file. */
function readNames(listing: Dir, count: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const names: Buffer[] = [];
    const next = (): void =>
      listing.read((error, entry) => {
        if (error) return reject(error);
        if (entry) names.push(entry.name as unknown as Buffer); // by the encoding it was opened with
        if (entry && names.length < count) next();
        else resolve(names);
      });
    next();
  });
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
