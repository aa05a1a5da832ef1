import { fstatSync, writeSync } from "node:fs";
import { expect, test } from "vitest";
import { openStatusFile, parseStatus, takeStatus } from "./status.ts";

test("what is written is read from its beginning, once, and the file is closed", () => {
  const file = openStatusFile()!;
  expect(fstatSync(file).nlink).toBe(0);
  writeSync(file, "I pid\nS 256 2 1500 500 4096\n");
  expect(takeStatus(file)).toEqual({
    levels: ["pid"],
    failure: null,
    ends: 1,
    unkillable: 0,
    end: { wstatus: 256, leftovers: 2, userMs: 1.5, systemMs: 0.5, maxRssKb: 4096 },
  });
  expect(() => fstatSync(file)).toThrow("EBADF");
});

test("of two ends the first counts, which is nearer to the command", () => {
  const status = parseStatus("I pid\nI group\nS 9 1 1 1 1\nS 15 0 2 2 2\n");
  expect(status).toMatchObject({ levels: ["pid", "group"], ends: 2, end: { wstatus: 9, leftovers: 1 } });
});

test("a failure is its step and errno; silence and unknown lines are nothing", () => {
  expect(parseStatus("E exec 2\n")).toMatchObject({ failure: { step: "exec", errno: 2 }, end: null });
  expect(parseStatus("")).toEqual({ levels: [], failure: null, end: null, ends: 0, unkillable: 0 });
  expect(parseStatus("U 3\n\nX\nS 0 0 0 0 0")).toMatchObject({ ends: 1, unkillable: 3 });
});
