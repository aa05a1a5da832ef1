import { expect, it } from "vitest";
import { toTimeCell } from "./cells.ts";
import { formatDuration, formatTable } from "./table.ts";

const id = "01a1ef80-a470-744f-9b1e-2fafc1d6b999";
const now = new Date("2026-11-18T12:00:00Z");
const header = ["ID", "SUMMARY", "AGE", "TAG"];
const rows = [
  [{ id }, "a summary that is much too long for this terminal", toTimeCell("2026-11-18T11:00:00Z", now), "short"],
  [{ id: "build-machine-number-1" }, "日本語の要約は幅が二倍である", toTimeCell("2026-11-19T12:00:00Z", now), ""],
];

it("truncates only the widest text column to fit the terminal, and never an id", () => {
  expect(formatTable(header, rows, 60)).toEqual([
    "ID                      SUMMARY                AGE     TAG",
    "c1d6b999                a summary that is mu…  1h ago  short",
    "build-machine-number-1  日本語の要約は幅が二…  in 1d",
  ]);
});

it("keeps a table that fits unchanged, and never makes a text column narrower than 8 characters", () => {
  expect(formatTable(["ID", "SUMMARY"], [[{ id }, "ok"]], 60)).toEqual(["ID        SUMMARY", "c1d6b999  ok"]);
  expect(formatTable(header, rows, 5)[1]).toBe("c1d6b999                a summa…  1h ago  short");
});

it("leaves out optional columns on a terminal that is too narrow for all columns", () => {
  expect(formatTable(header, rows, 45, ["TAG", "AGE"])[1]).toBe("c1d6b999                a summary th…  1h ago");
  expect(formatTable(header, rows, 35, ["TAG", "AGE"])[1]).toBe("c1d6b999                a summary …");
  expect(formatTable(header, rows, 60, ["TAG", "AGE"])[0]).toContain("TAG");
});

it("replaces control characters in cells", () => {
  expect(formatTable(["A"], [["x\u001b[31m\ny"]], 60)).toEqual(["A", "x [31m y"]);
});

it.each([
  [999.4, "999ms"],
  [999.6, "1.0s"],
  [59_949, "59.9s"],
  [59_960, "1m0s"],
  [119_700, "2m0s"],
  [3_599_800, "1h0m"],
  [7_265_000, "2h1m"],
])("formats %d ms as %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
