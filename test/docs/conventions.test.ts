import { expect, it } from "vitest";
import { findConventionViolations } from "./conventions.ts";
import { readPages } from "./page.ts";

const pages = readPages();

it("writes every block of every page in a form that a test checks", () => {
  expect(pages.flatMap(findConventionViolations)).toEqual([]);
});

/** Each one is a command that no test runs, so a new one needs a reason that holds on every machine. */
const maxNotRun = 12;

it("runs every command except a few that need another machine", () => {
  const notRun = pages.flatMap(({ path, blocks }) =>
    blocks.flatMap(({ norun, line }) => (norun === null ? [] : [`${path}:${line}: not run: ${norun}`])),
  );
  process.stdout.write(`${notRun.join("\n")}\n`);
  expect(notRun.length).toBeLessThanOrEqual(maxNotRun);
});
