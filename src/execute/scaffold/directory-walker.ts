import { type ConfinedDirectory, openConfinedDirectory } from "../../tools/confined-directory.ts";

/** Opens one directory below a root at a time and holds its parents open, so that a sibling is one step away. */
export interface DirectoryWalker {
  /** Returns a directory that stays open until the next call. */
  enter(parts: readonly Buffer[]): Promise<ConfinedDirectory>;
  close(): Promise<void>;
}

export function openDirectoryWalker(root: string): DirectoryWalker {
  /** The root, then the open directories below it; `names` are theirs. */
  const openDirectories: ConfinedDirectory[] = [];
  const names: Buffer[] = [];

  async function closeBelow(depth: number): Promise<void> {
    names.length = Math.min(names.length, Math.max(0, depth - 1));
    for (const directory of openDirectories.splice(depth).toReversed()) await directory.close();
  }

  return {
    async enter(parts) {
      let commonDepth = 0;
      while (
        commonDepth < names.length &&
        commonDepth < parts.length &&
        names[commonDepth]!.equals(parts[commonDepth]!)
      )
        commonDepth++;
      await closeBelow(commonDepth + 1);
      if (openDirectories.length === 0) openDirectories.push(await openConfinedDirectory(root));
      for (const name of parts.slice(commonDepth)) {
        openDirectories.push(await openDirectories.at(-1)!.openDirectory(name));
        names.push(name);
      }
      return openDirectories.at(-1)!;
    },
    close: () => closeBelow(0),
  };
}
