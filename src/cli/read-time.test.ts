import { expect, it } from "vitest";
import { readTime } from "./read-time.ts";

it("counts a time span back from now", () => {
  const earliest = Date.now() - 3_600_000;
  const time = Date.parse(readTime({ since: "1h" }, "since", "runs list")!);
  expect(time).toBeGreaterThanOrEqual(earliest);
  expect(time).toBeLessThanOrEqual(Date.now() - 3_600_000);
});

it.each([
  ["2026-11-01", "2026-11-01T00:00:00.000Z"],
  ["2026-11-01T12:00:00+01:00", "2026-11-01T11:00:00.000Z"],
])("reads %s as an exact time", (until, expected) => {
  expect(readTime({ until }, "until", "runs list")).toBe(expected);
});

it.each(["", "5", "soon", "-1h", "1y", "99999999w", "2026-13-01"])("refuses %j", (since) => {
  expect(() => readTime({ since }, "since", "runs list")).toThrow(
    expect.objectContaining({ code: "DROVER-USE-001", message: expect.stringContaining("such as 1h or 7d") }),
  );
});

it("returns undefined without the option", () => {
  expect(readTime({}, "since", "runs list")).toBe(undefined);
});
