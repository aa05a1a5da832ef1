import { constants } from "node:fs";
import { chmod, mkdir, open, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  isWorkPath,
  maxSessionFileBytes,
  maxStateBytes,
  type RemovedFile,
  type SessionFile,
} from "../../model/session-state.ts";
import type { ConfinedDirectory } from "../../tools/confined-directory.ts";
import { codeOf, gone } from "../scaffold/find-files.ts";
import { openDirectoryWalker } from "../scaffold/directory-walker.ts";

/** Tracks the changes in a session's work directory, so that they can be saved. */
export interface FileTracker {
  /** Whether the last save included every file, so that another runner can continue the session. */
  readonly portable: boolean;
  /** Whether nothing was saved yet. */
  readonly isNew: boolean;
  changes(): Promise<Changes>;
}

interface Changes {
  files: (SessionFile | RemovedFile)[];
  portable: boolean;
  /** Call after the save: the next changes() then starts from here. */
  saved(): void;
}

const maxEntries = 20_000;
/** Limit for the files in one save, and so for each file. */
const maxBatchBytes = maxStateBytes;

interface Entry {
  type: SessionFile["type"];
  /** Changes when the file is written or replaced. */
  fingerprint: string;
  size: number;
}

/** Leaves out files that are too many or too large. The session can then be continued only on this runner. */
export function trackFiles(root: string): FileTracker {
  let saved = new Map<string, Entry>();
  let portable = false;
  let isNew = true;
  return {
    get portable() {
      return portable;
    },
    get isNew() {
      return isNew;
    },
    async changes() {
      const found = await scan(root);
      const files: Changes["files"] = [];
      let isComplete = found.isComplete;
      for (const [path, entry] of found.entries) {
        if (saved.get(path)?.fingerprint === entry.fingerprint) continue;
        const bytes = await read(root, path, entry);
        if (bytes === null) {
          isComplete = false;
          found.entries.delete(path);
        } else files.push({ path, type: entry.type, bytes });
      }
      for (const path of saved.keys()) if (!found.entries.has(path)) files.push({ path, type: null });
      return {
        files,
        portable: isComplete,
        saved() {
          saved = found.entries;
          portable = isComplete;
          isNew = false;
        },
      };
    },
  };
}

/** Returns at least one batch. Each is small enough for one save. */
export function batches<F extends SessionFile | RemovedFile>(files: readonly F[]): F[][] {
  const all: F[][] = [[]];
  let bytes = 0;
  for (const file of files) {
    const size = file.type === null ? 0 : file.bytes.length;
    if (bytes + size > maxBatchBytes) {
      all.push([]);
      bytes = 0;
    }
    all.at(-1)!.push(file);
    bytes += size;
  }
  return all;
}

/** Restores into a new, empty directory. The files come from another machine: never write outside or follow a symlink. */
export async function restoreFiles(root: string, files: AsyncIterable<SessionFile>): Promise<void> {
  const links: SessionFile[] = [];
  for await (const file of files) {
    if (!isWorkPath(file.path)) throw new Error(`a saved file has the invalid path ${JSON.stringify(file.path)}`);
    const path = join(root, file.path);
    if (file.type === "folder") await mkdir(path, { recursive: true, mode: 0o700 });
    else if (file.type === "link") links.push(file);
    else {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const handle = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW);
      try {
        await handle.writeFile(file.bytes);
      } finally {
        await handle.close();
      }
      await chmod(path, file.type === "executable" ? 0o755 : 0o644);
    }
  }
  for (const { path, bytes } of links) {
    await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o700 });
    await symlink(Buffer.from(bytes), join(root, path));
  }
}

async function scan(root: string): Promise<{ entries: Map<string, Entry>; isComplete: boolean }> {
  const entries = new Map<string, Entry>();
  const walker = openDirectoryWalker(root);
  const directories: Buffer[][] = [[]];
  let bytes = 0;
  let isComplete = true;
  try {
    for (const above of directories) {
      const folder = await unlessGone(() => walker.enter(above));
      if (folder === null) continue;
      for await (const found of folder.entries(64))
        for (const { name, kind } of found) {
          const parts = [...above, name];
          const path = textOf(parts);
          const seen = await unlessGone(() => folder.stat(name));
          if (seen === null) continue;
          bytes += kind === "file" ? Number(seen.size) : 0;
          const type = kind === "file" && (Number(seen.mode) & 0o111) !== 0 ? "executable" : kind;
          if (type === "other" || path === null || entries.size >= maxEntries || bytes > maxSessionFileBytes) {
            isComplete = false;
            continue;
          }
          if (type === "folder") directories.push(parts);
          const fingerprint =
            type === "folder" ? type : [type, seen.ino, seen.size, seen.mtimeNs, seen.ctimeNs].join(" ");
          entries.set(path, { type, fingerprint, size: Number(seen.size) });
        }
    }
  } finally {
    await walker.close();
  }
  return { entries, isComplete };
}

/** null if the file cannot be saved. */
async function read(root: string, path: string, { type, size }: Entry): Promise<Uint8Array | null> {
  if (type === "folder") return new Uint8Array();
  if (size > maxBatchBytes) return null;
  const parts = path.split("/").map((part) => Buffer.from(part));
  const walker = openDirectoryWalker(root);
  try {
    return await unlessGone(async () => {
      const folder = await walker.enter(parts.slice(0, -1));
      return type === "link" ? folder.link(parts.at(-1)!) : readFile(folder, parts.at(-1)!);
    });
  } finally {
    await walker.close();
  }
}

async function readFile(folder: ConfinedDirectory, name: Buffer): Promise<Uint8Array | null> {
  const handle = await folder.file(name);
  try {
    const bytes = await handle.readFile();
    return bytes.length > maxBatchBytes ? null : bytes;
  } finally {
    await handle.close();
  }
}

function textOf(parts: readonly Buffer[]): string | null {
  const path = parts.map((part) => part.toString("utf8")).join("/");
  const same = Buffer.from(path).equals(
    Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [slash, part]))),
  );
  return same && isWorkPath(path) ? path : null;
}

const slash = Buffer.from("/");

async function unlessGone<T>(act: () => Promise<T>): Promise<T | null> {
  try {
    return await act();
  } catch (error) {
    if (gone.has(codeOf(error)) || codeOf(error) === "EACCES") return null;
    throw error;
  }
}
