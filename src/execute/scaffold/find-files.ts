import type { FileHandle } from "node:fs/promises";
import type { FoundFile } from "../../model/executor.ts";
import { type ConfinedFolder, openConfined } from "./confined-folder.ts";
import { type NameFault, nameFault, printableName } from "./file-names.ts";

export interface FindOptions {
  root: string;
  /** Changed at this moment or later, on the kernel's clock for files. */
  since: bigint;
  /** Names in the root that never count. */
  inputs: ReadonlySet<string>;
  maxEntries: number;
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

/** What was created or changed: regular files without a dot in front, no links of either kind, nothing outside. */
export async function findFiles(options: FindOptions): Promise<FoundFiles> {
  const found: FoundFiles = { files: [], leftOut: [], cut: false };
  let left = options.maxEntries;

  async function walk(folder: ConfinedFolder, above: readonly Buffer[]): Promise<void> {
    for await (const name of folder.entries()) {
      if (--left < 0) found.cut = true;
      if (found.cut) return;
      if (name[0] === 0x2e || (above.length === 0 && options.inputs.has(name.toString("utf8")))) continue;
      await unlessGone(() => visit(folder, [...above, name]));
    }
  }

  async function visit(folder: ConfinedFolder, parts: readonly Buffer[]): Promise<void> {
    const name = parts.at(-1)!;
    const path = joined(parts);
    const leaveOut = (reason: LeftOut["reason"]): void =>
      void found.leftOut.push({ path: printableName(path), reason });
    const seen = await folder.look(name);
    if (seen.isDirectory()) {
      if (parts.length >= maxDepth) return leaveOut("too_deep");
      const inner = await folder.folder(name).catch((error: unknown) => {
        if (codeOf(error) !== "EACCES") throw error;
        leaveOut("unreadable");
      });
      if (!inner) return;
      try {
        await walk(inner, parts);
      } finally {
        await inner.close();
      }
    } else if (seen.isFile() && seen.ctimeNs >= options.since) {
      const fault = nameFault(path);
      if (fault) return leaveOut(fault);
      if (seen.nlink > 1n) return leaveOut("hard_link");
      const open = (): Promise<FileHandle> => openFound(options.root, parts);
      found.files.push({ path: path.toString("utf8"), size: Number(seen.size), open });
    }
  }

  const root = await openConfined(options.root);
  try {
    await walk(root, []);
  } finally {
    await root.close();
  }
  return found;
}

/** From the root again, step by step: what was safe when it was found may have been exchanged since. */
async function openFound(root: string, parts: readonly Buffer[]): Promise<FileHandle> {
  let folder = await openConfined(root);
  try {
    for (const name of parts.slice(0, -1)) {
      const inner = await folder.folder(name);
      await folder.close();
      folder = inner;
    }
    return await folder.file(parts.at(-1)!);
  } finally {
    await folder.close();
  }
}

/** What goes away or turns into something else while it is looked at is no file of the run. */
async function unlessGone(look: () => Promise<void>): Promise<void> {
  try {
    await look();
  } catch (error) {
    if (!gone.has(codeOf(error))) throw error;
  }
}

function joined(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [slash, part])));
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
