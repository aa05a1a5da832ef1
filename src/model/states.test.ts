import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { canMove, failureReasons, isTerminal, runStatuses } from "./states.ts";

it("nothing leaves a final state", () => {
  const final = runStatuses.filter(isTerminal);
  expect(final).toEqual(["completed", "failed", "cancelled"]);
  for (const from of final) for (const to of runStatuses) expect(canMove(from, to)).toBe(false);
});

it("every other state can end, and all can be reached", () => {
  for (const from of runStatuses.filter((status) => !isTerminal(status))) {
    expect(canMove(from, "failed")).toBe(true);
    expect(canMove(from, "cancelled")).toBe(true);
  }
  expect(runStatuses.filter((to) => !runStatuses.some((from) => canMove(from, to)))).toEqual([]);
});

it("docs/states.md lists every reason, in this order, and no other", () => {
  const page = readFileSync(new URL("../../docs/states.md", import.meta.url), "utf8");
  const [, reasons = ""] = page.split("\n## Reasons\n");
  expect([...reasons.matchAll(/^\| `(\w+)` \| [^|]+ \|$/gm)].map(([, reason]) => reason)).toEqual(failureReasons);
});
