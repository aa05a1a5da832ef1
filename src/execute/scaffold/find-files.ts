import type { FileHandle } from "node:fs/promises";
import type { FoundFile } from "../../model/executor.ts";
import type { ConfinedDirectory } from "../../tools/confined-directory.ts";
import { type NameProblem, findNameProblem, toPrintableName } from "./file-names.ts";
import { openDirectoryWalker } from "./directory-walker.ts";

export interface FindOptions {
  /** A real path. */
  root: string;
  /** Finds only files whose ctime, in nanoseconds, is at or after this. */
  since: bigint;
  /** Names in the root that are skipped. */
  inputs: ReadonlySet<string>;
  maxEntries: number;
  /** Stops the search early. */
  signal: AbortSignal;
}

export interface SkippedFile {
  path: string;
  reason: NameProblem | "hard_link" | "too_deep" | "unreadable" | "gone" | "too_large" | "too_many";
  size?: number;
}

export interface FoundFiles {
  files: FoundFile[];
  skipped: SkippedFile[];
  /** Whether the search stopped at `maxEntries`. */
  isTruncated: boolean;
}

const maxDepth = 64;
/** Error codes of a file that is gone, or was replaced by a link or by something that cannot be opened. */
export const vanishedCodes: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENXIO", "EXCHANGED"]);
const slash = Buffer.from("/");

/** Directories of installed packages. They can contain more than `maxEntries` entries, so they are searched last. */
const packageDirectories: ReadonlySet<string> = new Set([
  "node_modules",
  "bower_components",
  "site-packages",
  "venv",
  "vendor",
  "__pycache__",
]);
/** How many entries are checked concurrently: one at a time is slow, and all at once starves other work. */
const concurrency = 64;

/**
 * Finds the files that were created or changed: regular files that are not hidden, not links and not outside the root.
 * Searches breadth first and stops early when the signal aborts.
 */
export async function findFiles(options: FindOptions): Promise<FoundFiles> {
  const { signal, maxEntries } = options;
  const result: FoundFiles = { files: [], skipped: [], isTruncated: false };
  const directories: Buffer[][] = [[]];
  const packages: Buffer[][] = [];
  const walker = openDirectoryWalker(options.root, { real: true });
  let remaining = maxEntries;

  async function checkEntry(directory: ConfinedDirectory, parts: Buffer[], isInstalled: boolean): Promise<void> {
    const name = parts.at(-1)!;
    const skip = (reason: SkippedFile["reason"]): void => addSkipped(parts, reason);
    const stats = await directory.stat(name);
    if (stats.isDirectory()) {
      if (parts.length >= maxDepth) return skip("too_deep");
      (isInstalled || packageDirectories.has(name.toString("utf8")) ? packages : directories).push(parts);
    } else if (stats.isFile() && stats.ctimeNs >= options.since) {
      const path = joinPath(parts);
      const problem = findNameProblem(path);
      if (problem) return skip(problem);
      if (stats.nlink > 1n) return skip("hard_link");
      const open = (): Promise<FileHandle> => openFile(options.root, parts);
      result.files.push({ path: path.toString("utf8"), size: Number(stats.size), open });
    }
  }

  function addSkipped(parts: readonly Buffer[], reason: SkippedFile["reason"]): void {
    result.skipped.push({ path: toPrintableName(joinPath(parts)), reason });
  }

  /**
   * Ignores an entry that is removed or replaced during `work`, and records one that cannot be read. Errors at the root
   * are thrown.
   */
  async function ignoreIfGone(parts: readonly Buffer[], work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (errorCode(error) === "EACCES" && parts.length > 0) addSkipped(parts, "unreadable");
      else if (!vanishedCodes.has(errorCode(error)) || parts.length === 0) throw error;
    }
  }

  async function readDirectory(parentParts: Buffer[], isInstalled: boolean): Promise<void> {
    const directory = await walker.enter(parentParts);
    const isCandidate = (name: Buffer): boolean =>
      name[0] !== 0x2e && !(parentParts.length === 0 && options.inputs.has(name.toString("utf8")));
    for await (const entries of directory.entries(concurrency)) {
      const names = entries.map(({ name }) => name);
      result.isTruncated = names.length > remaining;
      const paths = names
        .slice(0, remaining)
        .filter(isCandidate)
        .map((name) => [...parentParts, name]);
      await Promise.all(paths.map((parts) => ignoreIfGone(parts, () => checkEntry(directory, parts, isInstalled))));
      remaining -= names.length;
      if (result.isTruncated || signal.aborted) return;
    }
  }

  try {
    // Both queues grow during the iteration.
    for (const queue of [directories, packages])
      for (const parts of queue) {
        if (result.isTruncated || signal.aborted) return result;
        await ignoreIfGone(parts, () => readDirectory(parts, queue === packages));
      }
  } finally {
    await walker.close();
  }
  return result;
}

/** Walks down from the root again, because a file may have been replaced since it was found. */
async function openFile(root: string, parts: readonly Buffer[]): Promise<FileHandle> {
  const walker = openDirectoryWalker(root, { real: true });
  try {
    const directory = await walker.enter(parts.slice(0, -1));
    return await directory.openFile(parts.at(-1)!);
  } finally {
    await walker.close();
  }
}

function joinPath(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [slash, part])));
}

export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
