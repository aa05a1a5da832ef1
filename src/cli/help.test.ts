import { expect, it } from "vitest";
import { formatWrappedColumns } from "./help.ts";

it("wraps the right column at words and keeps its indent", () => {
  const rows = [
    ["--detach", "print the run's id and do not wait for the result"],
    ["-q, --quiet", "print no progress"],
  ] as const;
  expect(formatWrappedColumns(rows, 45)).toEqual([
    "  --detach     print the run's id and do not",
    "               wait for the result",
    "  -q, --quiet  print no progress",
  ]);
});
