import { type ConfinedDirectory, openConfinedDirectory } from "../../tools/confined-directory.ts";

/** Opens one directory below a root at a time and holds its parents open, so that a sibling is one step away. */
export interface DirectoryWalker {
  /** Returns a directory that stays open until the next call. */
  enter(parts: readonly Buffer[]): Promise<ConfinedDirectory>;
  close(): Promise<void>;
}

export function openDirectoryWalker(root: string): DirectoryWalker {
  /** The root, and the directories opened below it; `at` holds their names. */
  const open: ConfinedDirectory[] = [];
  const at: Buffer[] = [];

  async function closeBelow(depth: number): Promise<void> {
    at.length = Math.min(at.length, Math.max(0, depth - 1));
    for (const directory of open.splice(depth).toReversed()) await directory.close();
  }

  return {
    async enter(parts) {
      let common = 0;
      while (common < at.length && common < parts.length && at[common]!.equals(parts[common]!)) common++;
      await closeBelow(common + 1);
      if (open.length === 0) open.push(await openConfinedDirectory(root));
      for (const name of parts.slice(common)) {
        open.push(await open.at(-1)!.directory(name));
        at.push(name);
      }
      return open.at(-1)!;
    },
    close: () => closeBelow(0),
  };
}
