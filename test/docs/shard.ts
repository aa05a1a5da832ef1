import { expect, it } from "vitest";
import { type Page, readPages } from "./page.ts";
import { runPage } from "./run-page.ts";

const shards = 3;

/** Pages that do not follow the conventions yet. Remove a page from this list when you rewrite it. */
export const unconverted: ReadonlySet<string> = new Set(["docs/claude-sdk.md"]);

/** Runs the pages of one shard that has something to run. One file per shard, because files run in parallel. */
export function testPages(shard: number): void {
  const pages = readPages()
    .filter((page) => hasSomethingToRun(page) && !unconverted.has(page.path))
    .sort((a, b) => b.blocks.length - a.blocks.length);
  for (const page of pages.filter((_, at) => at % shards === shard))
    it(`${page.path}: every command and snippet works`, async () => {
      expect((await runPage(page)).join("\n\n")).toBe("");
    });
}

const hasSomethingToRun = ({ blocks }: Page): boolean =>
  blocks.some(({ language, norun }) => norun === null && ["sh", "ts", "js"].includes(language));
