// What one caller may cost the others, of docs/torture.md, at a size that fits; times are judged by `npm run torture`.
import { expect, test } from "vitest";
import { stalledReaders } from "../../torture/stalled-readers.ts";
import { deepDirectories } from "../../torture/deep-directories.ts";
import { slowPatterns } from "../../torture/slow-patterns.ts";
import { tortureTools } from "./torture-tools.ts";

test("H6: a runner starts again whatever its commands have left behind", async () => {
  const { broken, seen } = await deepDirectories({ rounds: 2, depth: 1500 }, await tortureTools("sqlite"));
  expect(broken).toEqual([]);
  expect(seen).toMatchObject({ killed: seen["rounds"]! / 2, "left over": 0 });
});

test.each(["sqlite", "postgres"] as const)(
  "H7: who reads gets everything beside readers that do not, on %s",
  async (engine) => {
    const size = { lines: 200_000, readers: 40, idleMs: 100, stayMs: 100 };
    const { broken, seen } = await stalledReaders(size, await tortureTools(engine));
    expect(broken).toEqual([]);
    expect(seen).toMatchObject({ readers: 40 });
  },
);

test.each(["sqlite", "postgres"] as const)(
  "M1: slow checks of one caller are refused, and no run comes of them, on %s",
  async (engine) => {
    const { broken, seen } = await slowPatterns({ submits: 40, idleMs: 100, stayMs: 100 }, await tortureTools(engine));
    expect(broken).toEqual([]);
    expect(seen["refused"]).toBeGreaterThan(0);
  },
);
