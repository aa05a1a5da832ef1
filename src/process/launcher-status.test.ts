import { fstatSync, writeSync } from "node:fs";
import { expect, test } from "vitest";
import { agrees, openStatusFile, parseStatus, takeStatus } from "./launcher-status.ts";

test("what is written is read from its beginning, once, and the file is closed", () => {
  const file = openStatusFile()!;
  expect(fstatSync(file).nlink).toBe(0);
  writeSync(file, "I pid\nS 256 2 1500 500 4096\n");
  expect(takeStatus(file)).toEqual({
    level: "pid",
    failure: null,
    unkillable: 0,
    end: { wstatus: 256, leftovers: 2, userMs: 1.5, systemMs: 0.5, maxRssKb: 4096 },
  });
  expect(() => fstatSync(file)).toThrow("EBADF");
});

test("of two ends the last whole one counts, as the launcher writes last", () => {
  const status = parseStatus("I pid\nS 0 1 1 1 1\nS 1280 0 2 2 2\nS 0 0\nS 0 0 0 0 0");
  expect(status).toMatchObject({ level: "pid", end: { wstatus: 1280, leftovers: 0 } });
});

test("an end agrees with a launcher that ended the same way, and with no other", () => {
  const byCode = (code: number) => ({ code, signal: null });
  expect(agrees({ wstatus: 5 << 8 }, byCode(5))).toBe(true);
  expect(agrees({ wstatus: 0 }, byCode(5))).toBe(false);
  expect(agrees({ wstatus: 0 }, { code: null, signal: "SIGKILL" })).toBe(false);
  // with the bit for a core; and where the launcher could not die of it
  expect(agrees({ wstatus: 11 | 0x80 }, { code: null, signal: "SIGSEGV" })).toBe(true);
  expect(agrees({ wstatus: 15 }, byCode(143))).toBe(true);
  expect(agrees({ wstatus: 15 }, byCode(0))).toBe(false);
  // Node gives 0 for a realtime signal
  expect(agrees({ wstatus: 40 }, byCode(0))).toBe(true);
});

test("a failure is its step and errno; silence and unknown lines are nothing", () => {
  expect(parseStatus("E exec 2\n")).toMatchObject({ failure: { step: "exec", errno: 2 }, end: null });
  expect(parseStatus("")).toEqual({ level: null, failure: null, end: null, unkillable: 0 });
  expect(parseStatus("U 3\n\nX\nS 0 0 0 0 0\n")).toMatchObject({ end: { wstatus: 0 }, unkillable: 3 });
});
