// Small versions of the rows of docs/torture.md about one caller's cost for others. `npm run torture` also judges
// times.
import { expect, test } from "vitest";
import { stalledReaders } from "../../torture/stalled-readers.ts";
import { deepDirectories } from "../../torture/deep-directories.ts";
import { slowPatterns } from "../../torture/slow-patterns.ts";
import { createTortureTools } from "./torture-tools.ts";

test("H6: a runner starts again whatever its commands left behind", async () => {
  const { broken, seen } = await deepDirectories({ rounds: 2, depth: 1500 }, await createTortureTools("sqlite"));
  expect(broken).toEqual([]);
  expect(seen).toMatchObject({ killed: seen["rounds"]! / 2, "left over": 0 });
});

test.each(["sqlite", "postgres"] as const)(
  "H7: readers get everything while other clients never read their responses, on %s",
  async (engine) => {
    const size = { lines: 200_000, readers: 40, idleMs: 100, stayMs: 100 };
    const { broken, seen } = await stalledReaders(size, await createTortureTools(engine));
    expect(broken).toEqual([]);
    expect(seen).toMatchObject({ readers: 40 });
  },
);

test.each(["sqlite", "postgres"] as const)(
  "M1: refuses one caller's slow checks, and creates no run from them, on %s",
  async (engine) => {
    const { broken, seen } = await slowPatterns(
      { submits: 40, idleMs: 100, stayMs: 100 },
      await createTortureTools(engine),
    );
    expect(broken).toEqual([]);
    expect(seen["refused"]).toBeGreaterThan(0);
  },
);
