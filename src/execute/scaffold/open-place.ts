import { type ConfinedFolder, openConfined } from "../../tools/confined-folder.ts";

/** One folder below a root at a time, with those above it held open: a neighbour is only one step away. */
export interface OpenPlace {
  /** Open until the next call. */
  goTo(parts: readonly Buffer[]): Promise<ConfinedFolder>;
  close(): Promise<void>;
}

export function openPlace(root: string): OpenPlace {
  /** The root, and what was opened below it by the names in `at`. */
  const open: ConfinedFolder[] = [];
  const at: Buffer[] = [];

  async function closeBelow(depth: number): Promise<void> {
    at.length = Math.min(at.length, Math.max(0, depth - 1));
    for (const folder of open.splice(depth).toReversed()) await folder.close();
  }

  return {
    async goTo(parts) {
      let common = 0;
      while (common < at.length && common < parts.length && at[common]!.equals(parts[common]!)) common++;
      await closeBelow(common + 1);
      if (open.length === 0) open.push(await openConfined(root));
      for (const name of parts.slice(common)) {
        open.push(await open.at(-1)!.folder(name));
        at.push(name);
      }
      return open.at(-1)!;
    },
    close: () => closeBelow(0),
  };
}
