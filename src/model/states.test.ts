import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { canMove, failureReasons, hasEnded, runStatuses } from "./states.ts";

it("allows no transition out of a state in which the run has ended", () => {
  const ended = runStatuses.filter(hasEnded);
  expect(ended).toEqual(["completed", "failed", "cancelled"]);
  for (const from of ended) for (const to of runStatuses) expect(canMove(from, to)).toBe(false);
});

it("can fail or cancel a run in every other state, and can reach every state", () => {
  for (const from of runStatuses.filter((status) => !hasEnded(status))) {
    expect(canMove(from, "failed")).toBe(true);
    expect(canMove(from, "cancelled")).toBe(true);
  }
  expect(runStatuses.filter((to) => !runStatuses.some((from) => canMove(from, to)))).toEqual([]);
});

it("lists exactly these reasons in docs/states.md, in the same order", () => {
  const page = readFileSync(new URL("../../docs/states.md", import.meta.url), "utf8");
  const [, reasons = ""] = page.split("\n## Reasons\n");
  expect([...reasons.matchAll(/^\| `(\w+)` \| [^|]+ \|$/gm)].map(([, reason]) => reason)).toEqual(failureReasons);
});
