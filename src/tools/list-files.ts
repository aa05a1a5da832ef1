import * as z from "zod";
import type { ConfinedDirectory, Entry } from "./confined-directory.ts";
import { defineFileTool } from "./file-tool.ts";
import { compileGlob } from "./glob.ts";
import { ToolFailure } from "./tool-failure.ts";

const maxEntries = 10_000;
const maxDepth = 64;
const batchSize = 512;
/** Directories that are skipped unless the pattern names them. */
const defaultSkippedNames = ["node_modules", ".git"];

export const listTool = defineFileTool({
  name: "file.list",
  description:
    "List files in a directory. Without a pattern: its direct entries. With one (such as **/*.ts): the files below it that match.",
  effect: "read",
  input: z.strictObject({
    path: z.string().optional().describe("Directory to list (default: the workspace's root)"),
    pattern: z.string().min(1).max(1000).optional().describe("Glob pattern to filter files"),
  }),
  run: ({ path = ".", pattern }, { workspace, signal }) =>
    workspace.withPath(path, { followLast: true }, async ({ directory, name }) => {
      const listing = new Listing(pattern ?? null, signal);
      if (name === null) await listing.read(directory, "");
      else if ((await directory.stat(name)).isDirectory())
        await withDirectory(directory, name, (target) => listing.read(target, ""));
      else throw new ToolFailure("not_a_folder", `${path} is not a directory.`);
      return { entries: listing.sortEntries(), ...(listing.isTruncated ? { truncated: true } : {}) };
    }),
});

class Listing {
  readonly #matches: ((path: string) => boolean) | null;
  readonly #isRecursive: boolean;
  readonly #skippedNames: readonly string[];
  readonly #signal: AbortSignal;
  readonly #entries: { path: string; type: Entry["kind"] }[] = [];
  isTruncated = false;

  constructor(pattern: string | null, signal: AbortSignal) {
    this.#matches = pattern === null ? null : compileGlob(pattern);
    this.#isRecursive = pattern !== null && /\/|\*\*/.test(pattern);
    this.#skippedNames = defaultSkippedNames.filter((name) => !pattern?.includes(name));
    this.#signal = signal;
  }

  async read(directory: ConfinedDirectory, prefix: string, depth = 0): Promise<void> {
    const subdirectories: Buffer[] = [];
    for await (const entries of directory.entries(batchSize)) {
      this.#signal.throwIfAborted();
      for (const { name, kind } of entries) {
        const path = prefix + name.toString("utf8");
        if (this.#matches === null || (kind !== "folder" && this.#matches(path))) this.#add(path, kind);
        if (
          kind === "folder" &&
          this.#isRecursive &&
          depth < maxDepth &&
          !this.#skippedNames.includes(name.toString("utf8"))
        )
          subdirectories.push(name);
      }
      if (this.isTruncated) return;
    }
    for (const name of subdirectories) {
      if (this.isTruncated) return;
      await withDirectory(directory, name, (subdirectory) =>
        this.read(subdirectory, `${prefix}${name.toString("utf8")}/`, depth + 1),
      );
    }
  }

  sortEntries(): { path: string; type: Entry["kind"] }[] {
    return this.#entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  #add(path: string, type: Entry["kind"]): void {
    if (this.#entries.length < maxEntries) this.#entries.push({ path, type });
    else this.isTruncated = true;
  }
}

async function withDirectory<T>(
  parent: ConfinedDirectory,
  name: Buffer,
  use: (directory: ConfinedDirectory) => Promise<T>,
): Promise<T> {
  const directory = await parent.openDirectory(name);
  try {
    return await use(directory);
  } finally {
    await directory.close();
  }
}
