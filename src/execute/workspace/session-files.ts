import { constants } from "node:fs";
import { open, symlink } from "node:fs/promises";
import {
  isWorkPath,
  maxSessionFileBytes,
  maxSessionFiles,
  maxStateBytes,
  type RemovedFile,
  type SessionFile,
} from "../../model/session-state.ts";
import type { ConfinedDirectory } from "../../tools/confined-directory.ts";
import { type HeldDirectory, openBelow, openOrCreate, splitPath, whileHeld } from "./held-directory.ts";
import { errorCode, vanishedCodes } from "../scaffold/find-files.ts";
import { openDirectoryWalker } from "../scaffold/directory-walker.ts";

/** Tracks the changes in a session's work directory, so that they can be saved. */
export interface FileTracker {
  /** Whether the last save included every file, so that another runner can continue the session. */
  readonly portable: boolean;
  /** Whether nothing was saved yet. */
  readonly isNew: boolean;
  findChanges(): Promise<Changes>;
}

interface Changes {
  files: (SessionFile | RemovedFile)[];
  portable: boolean;
  /** Call this after the save. The next findChanges() then returns only later changes. */
  markSaved(): void;
}

/** Limit for the files in one save, and so for each file. */
const maxBatchBytes = maxStateBytes;

interface Entry {
  type: SessionFile["type"];
  /** Changes when the file is written or replaced. */
  fingerprint: string;
  size: number;
}

/** Skips files beyond the limits on number and size. The session can then be continued only on this runner. */
export function trackFiles(root: string): FileTracker {
  let savedEntries = new Map<string, Entry>();
  let portable = false;
  let isNew = true;
  return {
    get portable() {
      return portable;
    },
    get isNew() {
      return isNew;
    },
    async findChanges() {
      const scanResult = await scan(root);
      const files: Changes["files"] = [];
      let isComplete = scanResult.isComplete;
      for (const [path, entry] of scanResult.entries) {
        if (savedEntries.get(path)?.fingerprint === entry.fingerprint) continue;
        const bytes = await readEntry(root, path, entry);
        if (bytes === null) {
          isComplete = false;
          scanResult.entries.delete(path);
        } else files.push({ path, type: entry.type, bytes });
      }
      for (const path of savedEntries.keys()) if (!scanResult.entries.has(path)) files.push({ path, type: null });
      return {
        files,
        portable: isComplete,
        markSaved() {
          savedEntries = scanResult.entries;
          portable = isComplete;
          isNew = false;
        },
      };
    },
  };
}

/** Returns at least one batch. Each is small enough for one save. */
export function splitIntoBatches<F extends SessionFile | RemovedFile>(files: readonly F[]): F[][] {
  const result: F[][] = [[]];
  let bytes = 0;
  for (const file of files) {
    const size = file.type === null ? 0 : file.bytes.length;
    if (bytes + size > maxBatchBytes) {
      result.push([]);
      bytes = 0;
    }
    result.at(-1)!.push(file);
    bytes += size;
  }
  return result;
}

/**
 * Restores into a new, empty directory. The files come from another machine, and processes of other runs may replace
 * directories at the same time: never write outside or follow a symlink.
 */
export async function restoreFiles(root: HeldDirectory, files: AsyncIterable<SessionFile>): Promise<void> {
  const links: SessionFile[] = [];
  for await (const file of files) {
    if (!isWorkPath(file.path)) throw new Error(`a saved file has the invalid path ${JSON.stringify(file.path)}`);
    if (file.type === "folder") openBelow(root, splitPath(file.path), openOrCreate).close();
    else if (file.type === "link") links.push(file);
    else await inParent(root, file.path, (path) => writeNewFile(path, file));
  }
  for (const { path, bytes } of links) await inParent(root, path, (at) => symlink(Buffer.from(bytes), at));
}

async function inParent(root: HeldDirectory, path: string, act: (path: Buffer) => Promise<void>): Promise<void> {
  const parts = splitPath(path);
  const parent = openBelow(root, parts.slice(0, -1), openOrCreate);
  await whileHeld(parent, () => act(parent.at(parts.at(-1)!)));
}

async function writeNewFile(path: Buffer, { type, bytes }: SessionFile): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW);
  try {
    await handle.writeFile(bytes);
    await handle.chmod(type === "executable" ? 0o755 : 0o644);
  } finally {
    await handle.close();
  }
}

async function scan(root: string): Promise<{ entries: Map<string, Entry>; isComplete: boolean }> {
  const entries = new Map<string, Entry>();
  const walker = openDirectoryWalker(root);
  const directories: Buffer[][] = [[]];
  let bytes = 0;
  let isComplete = true;
  try {
    for (const parentParts of directories) {
      const directory = await nullIfGone(() => walker.enter(parentParts));
      if (directory === null) continue;
      for await (const batch of directory.entries(64))
        for (const { name, kind } of batch) {
          const parts = [...parentParts, name];
          const path = toPath(parts);
          const stats = await nullIfGone(() => directory.stat(name));
          if (stats === null) continue;
          bytes += kind === "file" ? Number(stats.size) : 0;
          const type = kind === "file" && (Number(stats.mode) & 0o111) !== 0 ? "executable" : kind;
          if (type === "other" || path === null || entries.size >= maxSessionFiles || bytes > maxSessionFileBytes) {
            isComplete = false;
            continue;
          }
          if (type === "folder") directories.push(parts);
          const fingerprint =
            type === "folder" ? type : [type, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(" ");
          entries.set(path, { type, fingerprint, size: Number(stats.size) });
        }
    }
  } finally {
    await walker.close();
  }
  return { entries, isComplete };
}

/** Returns null if the file cannot be saved. */
async function readEntry(root: string, path: string, { type, size }: Entry): Promise<Uint8Array | null> {
  if (type === "folder") return new Uint8Array();
  if (size > maxBatchBytes) return null;
  const parts = splitPath(path);
  const walker = openDirectoryWalker(root);
  try {
    return await nullIfGone(async () => {
      const directory = await walker.enter(parts.slice(0, -1));
      return type === "link" ? directory.readLink(parts.at(-1)!) : readFile(directory, parts.at(-1)!);
    });
  } finally {
    await walker.close();
  }
}

async function readFile(directory: ConfinedDirectory, name: Buffer): Promise<Uint8Array | null> {
  const handle = await directory.openFile(name);
  try {
    const bytes = await handle.readFile();
    return bytes.length > maxBatchBytes ? null : bytes;
  } finally {
    await handle.close();
  }
}

function toPath(parts: readonly Buffer[]): string | null {
  const path = parts.map((part) => part.toString("utf8")).join("/");
  const isUtf8Path = Buffer.from(path).equals(
    Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [slash, part]))),
  );
  return isUtf8Path && isWorkPath(path) ? path : null;
}

const slash = Buffer.from("/");

async function nullIfGone<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (vanishedCodes.has(errorCode(error)) || errorCode(error) === "EACCES") return null;
    throw error;
  }
}
