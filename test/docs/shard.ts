import { expect, it } from "vitest";
import { type Page, readPages } from "./page.ts";
import { runPage } from "./run-page.ts";

const shards = 3;

/** Runs the pages of one shard that has something to run. One file per shard, because files run in parallel. */
export function testPages(shard: number): void {
  const pages = readPages()
    .filter(hasSomethingToRun)
    .sort((a, b) => b.blocks.length - a.blocks.length);
  for (const page of pages.filter((_, index) => index % shards === shard))
    it(`${page.path}: every command and snippet works`, async () => {
      expect((await runPage(page)).join("\n\n")).toBe("");
    });
}

const hasSomethingToRun = ({ blocks }: Page): boolean =>
  blocks.some(({ language, norun }) => norun === null && ["sh", "ts", "js"].includes(language));
