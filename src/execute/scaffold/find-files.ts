import type { FileHandle } from "node:fs/promises";
import type { FoundFile } from "../../model/executor.ts";
import type { ConfinedFolder } from "../../tools/confined-folder.ts";
import { type NameFault, nameFault, printableName } from "./file-names.ts";
import { openPlace } from "./open-place.ts";

export interface FindOptions {
  root: string;
  /** Changed at this moment or later, on the kernel's clock for files. */
  since: bigint;
  /** Names in the root that never count. */
  inputs: ReadonlySet<string>;
  maxEntries: number;
  /** Nobody wants what it finds any more. */
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
  /** There was more than is ever looked at. */
  cut: boolean;
}

const maxDepth = 64;
/** Also what a link, or something that cannot be opened, has taken the place of. */
export const gone: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENXIO", "EXCHANGED"]);
const slash = Buffer.from("/");

/** What others made and a run merely installed, which can be more than is ever looked at: its own files go first. */
const installed: ReadonlySet<string> = new Set([
  "node_modules",
  "bower_components",
  "site-packages",
  "venv",
  "vendor",
  "__pycache__",
]);
/** So many are looked at together: one after the other takes longer, all at once takes everybody's turn. */
const together = 64;

/**
 * What was created or changed: regular files without a dot in front, no links of either kind, nothing outside. What
 * lies high up comes first. Ends early when the signal is aborted.
 */
export async function findFiles(options: FindOptions): Promise<FoundFiles> {
  const { signal, maxEntries } = options;
  const found: FoundFiles = { files: [], leftOut: [], cut: false };
  const soon: Buffer[][] = [[]];
  const late: Buffer[][] = [];
  const place = openPlace(options.root);
  let left = maxEntries;

  async function look(folder: ConfinedFolder, parts: Buffer[], isLate: boolean): Promise<void> {
    const name = parts.at(-1)!;
    const leaveOut = (reason: LeftOut["reason"]): void => leave(parts, reason);
    const seen = await folder.look(name);
    if (seen.isDirectory()) {
      if (parts.length >= maxDepth) return leaveOut("too_deep");
      (isLate || installed.has(name.toString("utf8")) ? late : soon).push(parts);
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

  /** What goes away or turns into something else while it is looked at is no file of the run. */
  async function unlessGone(parts: readonly Buffer[], act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (codeOf(error) === "EACCES" && parts.length > 0) leave(parts, "unreadable");
      else if (!gone.has(codeOf(error)) || parts.length === 0) throw error;
    }
  }

  async function readFolder(above: Buffer[], isLate: boolean): Promise<void> {
    const folder = await place.goTo(above);
    const counts = (name: Buffer): boolean =>
      name[0] !== 0x2e && !(above.length === 0 && options.inputs.has(name.toString("utf8")));
    for await (const entries of folder.entries(together)) {
      const names = entries.map(({ name }) => name);
      found.cut = names.length > left;
      const paths = names
        .slice(0, left)
        .filter(counts)
        .map((name) => [...above, name]);
      await Promise.all(paths.map((parts) => unlessGone(parts, () => look(folder, parts, isLate))));
      left -= names.length;
      if (found.cut || signal.aborted) return;
    }
  }

  try {
    // both grow while they are gone through
    for (const queue of [soon, late])
      for (const parts of queue) {
        if (found.cut || signal.aborted) return found;
        await unlessGone(parts, () => readFolder(parts, queue === late));
      }
  } finally {
    await place.close();
  }
  return found;
}

/** From the root again, step by step: what was safe when it was found may have been exchanged since. */
async function openFound(root: string, parts: readonly Buffer[]): Promise<FileHandle> {
  const place = openPlace(root);
  try {
    const folder = await place.goTo(parts.slice(0, -1));
    return await folder.file(parts.at(-1)!);
  } finally {
    await place.close();
  }
}

function joined(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [slash, part])));
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
