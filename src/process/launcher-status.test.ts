import { fstatSync, writeSync } from "node:fs";
import { expect, test } from "vitest";
import { matchesExit, openStatusFile, parseStatus, readStatusFile } from "./launcher-status.ts";

test("reads the report from its start and closes the file", () => {
  const file = openStatusFile()!;
  expect(fstatSync(file).nlink).toBe(0);
  writeSync(file, "I pid\nS 256 2 1500 500 4096\n");
  expect(readStatusFile(file)).toEqual({
    level: "pid",
    failure: null,
    killedProcesses: [],
    unkillable: 0,
    end: { wstatus: 256, leftovers: 2, userMs: 1.5, systemMs: 0.5, maxRssKb: 4096 },
  });
  expect(() => fstatSync(file)).toThrow("EBADF");
});

test("uses the last complete line of each kind, because the launcher writes last", () => {
  const status = parseStatus("I pid\nS 0 1 1 1 1\nS 1280 0 2 2 2\nS 0 0\nS 0 0 0 0 0");
  expect(status).toMatchObject({ level: "pid", end: { wstatus: 1280, leftovers: 0 } });
});

test("reads the processes that the launcher killed, and drops the last word of a truncated command line", () => {
  const truncated = `run ${"x".repeat(123)}`;
  const { killedProcesses } = parseStatus(`I pid\nL 7 sleep 9 # \u00c3\u00bc\nL 8 ${truncated}\nS 0 2 0 0 0\n`);
  expect(killedProcesses).toEqual([
    { pid: 7, commandLine: "sleep 9 # \u00fc" },
    { pid: 8, commandLine: "run ..." },
  ]);
});

test("accepts a reported end only if the launcher exited the same way", () => {
  const exitedWith = (code: number) => ({ code, signal: null });
  expect(matchesExit({ wstatus: 5 << 8 }, exitedWith(5))).toBe(true);
  expect(matchesExit({ wstatus: 0 }, exitedWith(5))).toBe(false);
  expect(matchesExit({ wstatus: 0 }, { code: null, signal: "SIGKILL" })).toBe(false);
  // The core dump bit is ignored.
  expect(matchesExit({ wstatus: 11 | 0x80 }, { code: null, signal: "SIGSEGV" })).toBe(true);
  // A launcher that cannot kill itself with the signal exits with 128 + signal.
  expect(matchesExit({ wstatus: 15 }, exitedWith(143))).toBe(true);
  expect(matchesExit({ wstatus: 15 }, exitedWith(0))).toBe(false);
  // Node reports a realtime signal as exit code 0.
  expect(matchesExit({ wstatus: 40 }, exitedWith(0))).toBe(true);
});

test("parses a failure, and ignores unknown lines", () => {
  expect(parseStatus("E exec 2\n")).toMatchObject({ failure: { step: "exec", errno: 2 }, end: null });
  expect(parseStatus("")).toEqual({ level: null, failure: null, end: null, killedProcesses: [], unkillable: 0 });
  expect(parseStatus("U 3\n\nX\nS 0 0 0 0 0\n")).toMatchObject({ end: { wstatus: 0 }, unkillable: 3 });
});
