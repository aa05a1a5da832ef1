import fc from "fast-check";
import { expect, it } from "vitest";
import { createRedactor } from "../redact/redactor.ts";
import { createOutputLog, textOf } from "./output-log.ts";

const secret = "hunter2-hunter2-hunter2";
const redactor = createRedactor({ variables: {}, values: [{ name: "PW", value: secret }] });
const open = (maxBytes: number) => createOutputLog({ maxBytes, redactor });

it("keeps everything within the limit, in order, byte for byte, however it is cut", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.array(fc.nat(40)),
      fc.boolean(),
      (text, cuts, takes) => {
        const log = open(4096);
        const bytes = Buffer.from(text, "utf8");
        const events = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          log.push("stdout", bytes.subarray(at, at + cut));
          if (takes) events.push(...log.take());
          at += cut;
        }
        const { events: rest, stdout } = log.finish();
        events.push(...rest);
        expect(stdout).toBe(bytes.toString("utf8"));
        expect(events.map(textOf).join("")).toBe(stdout);
        for (const event of events) expect(event.base64).toBeUndefined();
      },
    ),
  );
});

it("keeps bytes that are not UTF-8 as base64", () => {
  const log = open(4096);
  log.push("stderr", Buffer.from([0xff, 0xfe, 0x00]));
  const { events, stdout } = log.finish();
  expect(stdout).toBe("");
  expect(events).toEqual([{ type: "output", stream: "stderr", base64: "//4A" }]);
});

it("past the limit keeps head and tail and says how much is between them", () => {
  const log = open(1000);
  const total = 200_000;
  for (let at = 0; at < total; at += 7) log.push("stdout", Buffer.from("abcdefg"));
  const { events, stdout } = log.finish();
  const skipped = events.find((event) => event.skipped)!.skipped!;
  const kept = events.map((event) => event.text!.length).reduce((sum, length) => sum + length, 0);
  expect(skipped).toBeGreaterThan(total - 1100);
  expect(kept).toBeLessThanOrEqual(1000);
  expect(stdout).toMatch(/^abcdefg.*\n\[\.\.\. \d+ bytes not kept \.\.\.\]\n.*abcdefg$/s);
});

it("shows no part of a secret that lies across the end of the head or the beginning of the tail", () => {
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 600 }), fc.integer({ min: 400, max: 600 }), (before, after) => {
      const log = open(1000);
      log.push(
        "stdout",
        Buffer.from(`${".".repeat(before)}${secret}${"-".repeat(50_000)}${secret}${".".repeat(after)}`),
      );
      const { stdout } = log.finish();
      // four characters in a row would be part of it; the mark names it
      expect(stdout.replaceAll("[redacted:PW]", "")).not.toMatch(/hunt|unte|nter|ter2|er2-|r2-h|2-hu|-hun/);
    }),
  );
});

it("what is taken early and what is taken at the end make the same record", () => {
  const early = open(4096);
  const late = open(4096);
  const takes = [];
  for (const piece of ["one ", secret.slice(0, 9), secret.slice(9), " two ü".slice(0, 6)]) {
    for (const log of [early, late]) log.push("stdout", Buffer.from(piece));
    takes.push(...early.take());
  }
  takes.push(...early.finish().events);
  expect(takes.map(textOf).join("")).toBe("one [redacted:PW] two ü");
  expect(late.finish().stdout).toBe("one [redacted:PW] two ü");
});
