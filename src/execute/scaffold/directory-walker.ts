import { BugError } from "../../model/errors.ts";
import { type ConfinedDirectory, openConfinedDirectory, openRealDirectory } from "../../tools/confined-directory.ts";

/** Opens one directory below a root at a time and holds its parents open, so that a sibling is one step away. */
export interface DirectoryWalker {
  /** Returns a directory that stays open until the next call. */
  enter(parts: readonly Buffer[], options?: EnterOptions): Promise<ConfinedDirectory>;
  close(): Promise<void>;
}

export interface EnterOptions {
  /** Creates missing directories below the root, for their owner alone. */
  create?: boolean;
}

/** `real`: the root is a real path, and must still be one when it is opened. */
export interface RootOptions {
  real?: boolean;
}

/**
 * Opens a directory below `root` while `act` runs. Follows no link below `root`, and `root` must not be one, even if
 * other processes replace directories at the same time.
 */
export async function inDirectory<T>(
  root: string,
  parts: readonly Buffer[],
  act: (directory: ConfinedDirectory) => Promise<T>,
  options: EnterOptions & RootOptions = {},
): Promise<T> {
  const walker = openDirectoryWalker(root, options);
  try {
    return await act(await walker.enter(parts, options));
  } finally {
    await walker.close();
  }
}

/** Creates a file; fails if the name is taken. */
export async function createFile(
  directory: ConfinedDirectory,
  name: string,
  content: string | Uint8Array,
  mode: number,
): Promise<void> {
  const file = await directory.create(Buffer.from(name), mode);
  try {
    await file.writeFile(content);
  } finally {
    await file.close();
  }
}

/** Splits a relative path. Ignores empty parts and `.`. */
export function toPathParts(path: string): Buffer[] {
  const parts = path.split("/");
  if (parts.includes("..")) throw new BugError(`${path} leaves its directory`);
  return parts.filter((part) => part !== "" && part !== ".").map((part) => Buffer.from(part));
}

export function openDirectoryWalker(root: string, { real = false }: RootOptions = {}): DirectoryWalker {
  const openRoot = real ? openRealDirectory : openConfinedDirectory;
  /** The root, then the open directories below it. `names` has the name of each, except for the root. */
  const openDirectories: ConfinedDirectory[] = [];
  const names: Buffer[] = [];

  async function closeBelow(depth: number): Promise<void> {
    names.length = Math.min(names.length, Math.max(0, depth - 1));
    for (const directory of openDirectories.splice(depth).toReversed()) await directory.close();
  }

  return {
    async enter(parts, { create = false } = {}) {
      let commonDepth = 0;
      while (
        commonDepth < names.length &&
        commonDepth < parts.length &&
        names[commonDepth]!.equals(parts[commonDepth]!)
      )
        commonDepth++;
      await closeBelow(commonDepth + 1);
      if (openDirectories.length === 0) openDirectories.push(await openRoot(root));
      for (const name of parts.slice(commonDepth)) {
        if (create) await makeIfMissing(openDirectories.at(-1)!, name);
        openDirectories.push(await openDirectories.at(-1)!.openDirectory(name));
        names.push(name);
      }
      return openDirectories.at(-1)!;
    },
    close: () => closeBelow(0),
  };
}

async function makeIfMissing(directory: ConfinedDirectory, name: Buffer): Promise<void> {
  await directory.makeDirectory(name, 0o700).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
}
