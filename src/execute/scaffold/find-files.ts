import type { FileHandle } from "node:fs/promises";
import type { FoundFile } from "../../model/executor.ts";
import type { ConfinedDirectory } from "../../tools/confined-directory.ts";
import { type NameFault, nameFault, printableName } from "./file-names.ts";
import { openDirectoryWalker } from "./directory-walker.ts";

export interface FindOptions {
  root: string;
  /** Only files changed at or after this time count, on the kernel's clock for files. */
  since: bigint;
  /** Names in the root that never count. */
  inputs: ReadonlySet<string>;
  maxEntries: number;
  /** Stops the search early. */
  signal: AbortSignal;
}

export interface LeftOut {
  path: string;
  reason: NameFault | "hard_link" | "too_deep" | "unreadable" | "gone" | "too_large" | "too_many";
  size?: number;
}

export interface FoundFiles {
  files: FoundFile[];
  leftOut: LeftOut[];
  /** The search stopped at `maxEntries`. */
  cut: boolean;
}

const maxDepth = 64;
/** Error codes of a file that is gone, or was replaced by a link or by something that cannot be opened. */
export const gone: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENXIO", "EXCHANGED"]);
const slash = Buffer.from("/");

/** Directories of installed packages. They can hold more than `maxEntries`, so they are searched last. */
const installed: ReadonlySet<string> = new Set([
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
  const found: FoundFiles = { files: [], leftOut: [], cut: false };
  const first: Buffer[][] = [[]];
  const last: Buffer[][] = [];
  const walker = openDirectoryWalker(options.root);
  let left = maxEntries;

  async function check(directory: ConfinedDirectory, parts: Buffer[], isInstalled: boolean): Promise<void> {
    const name = parts.at(-1)!;
    const leaveOut = (reason: LeftOut["reason"]): void => leave(parts, reason);
    const seen = await directory.stat(name);
    if (seen.isDirectory()) {
      if (parts.length >= maxDepth) return leaveOut("too_deep");
      (isInstalled || installed.has(name.toString("utf8")) ? last : first).push(parts);
    } else if (seen.isFile() && seen.ctimeNs >= options.since) {
      const path = joined(parts);
      const fault = nameFault(path);
      if (fault) return leaveOut(fault);
      if (seen.nlink > 1n) return leaveOut("hard_link");
      const open = (): Promise<FileHandle> => openFound(options.root, parts);
      found.files.push({ path: path.toString("utf8"), size: Number(seen.size), open });
    }
  }

  function leave(parts: readonly Buffer[], reason: LeftOut["reason"]): void {
    found.leftOut.push({ path: printableName(joined(parts)), reason });
  }

  /** Skips a file that disappears or is replaced while it is being checked. */
  async function unlessGone(parts: readonly Buffer[], act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (codeOf(error) === "EACCES" && parts.length > 0) leave(parts, "unreadable");
      else if (!gone.has(codeOf(error)) || parts.length === 0) throw error;
    }
  }

  async function readDirectory(above: Buffer[], isInstalled: boolean): Promise<void> {
    const directory = await walker.enter(above);
    const counts = (name: Buffer): boolean =>
      name[0] !== 0x2e && !(above.length === 0 && options.inputs.has(name.toString("utf8")));
    for await (const entries of directory.entries(concurrency)) {
      const names = entries.map(({ name }) => name);
      found.cut = names.length > left;
      const paths = names
        .slice(0, left)
        .filter(counts)
        .map((name) => [...above, name]);
      await Promise.all(paths.map((parts) => unlessGone(parts, () => check(directory, parts, isInstalled))));
      left -= names.length;
      if (found.cut || signal.aborted) return;
    }
  }

  try {
    // both queues grow during the iteration
    for (const queue of [first, last])
      for (const parts of queue) {
        if (found.cut || signal.aborted) return found;
        await unlessGone(parts, () => readDirectory(parts, queue === last));
      }
  } finally {
    await walker.close();
  }
  return found;
}

/** Walks down from the root again, because a file may have been replaced since it was found. */
async function openFound(root: string, parts: readonly Buffer[]): Promise<FileHandle> {
  const walker = openDirectoryWalker(root);
  try {
    const directory = await walker.enter(parts.slice(0, -1));
    return await directory.file(parts.at(-1)!);
  } finally {
    await walker.close();
  }
}

function joined(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [slash, part])));
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
