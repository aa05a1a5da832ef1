import fc from "fast-check";
import { expect, test } from "vitest";
import { type OutputEvent, getOutputBytes, getDisplayBytes } from "../../model/output.ts";
import { createRedactor } from "../../redact/redactor.ts";
import { createOutputEvents } from "./output-events.ts";

/** Uses the long default timeout, because a busy machine may be slow. */
const poll = <T>(get: () => T | Promise<T>) => expect.poll(get, { interval: 10 });

const secret = "hunter2-hunter2-hunter2";
const redactor = createRedactor({ variables: {}, values: [{ name: "PW", value: secret }] });

function setUp({ delayMs = 1_000_000, maxBytes = Infinity } = {}) {
  const events: OutputEvent[] = [];
  const output = createOutputEvents({ redactor, delayMs, maxBytes, write: (event) => void events.push(event) });
  return {
    events,
    ...output,
    push: (text: string | Uint8Array, stream: "stdout" | "stderr" = "stdout") => output.push(stream, Buffer.from(text)),
    text: () => Buffer.concat(events.map(getDisplayBytes)).toString("utf8"),
  };
}

const outputEvent = (text: string, stream: "stdout" | "stderr" = "stdout"): OutputEvent => ({
  type: "output",
  stream,
  text,
});

test("joins chunks of one stream and keeps the order of the streams", () => {
  const { events, push, end } = setUp();
  push("one\n");
  push("two\n");
  push("three\n", "stderr");
  push("four\n");
  end();
  expect(events).toEqual([outputEvent("one\ntwo\n"), outputEvent("three\n", "stderr"), outputEvent("four\n")]);
});

test("writes buffered output after the delay", async () => {
  const { events, push, end } = setUp({ delayMs: 10 });
  push("hi\n");
  expect(events).toEqual([]);
  await poll(() => events).toEqual([outputEvent("hi\n")]);
  end();
});

test("writes 64 KB at once, in events of at most that size, without splitting a character", () => {
  const { events, push, end } = setUp();
  const text = "é€😀".repeat(30_000);
  push(text);
  expect(events.length).toBeGreaterThan(3);
  end();
  expect(events.every((event) => Buffer.byteLength(event.text!) <= 65_536)).toBe(true);
  expect(events.map((event) => event.text).join("")).toBe(text);
});

test.each([4096, Infinity])("keeps text byte for byte, however it is split into chunks (limit %s)", (maxBytes) => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.array(fc.nat(40)),
      fc.boolean(),
      (text, chunkSizes, flushesEachChunk) => {
        const { events, push, flush, end } = setUp({ maxBytes });
        const bytes = Buffer.from(text, "utf8");
        let offset = 0;
        for (const chunkBytes of [...chunkSizes, bytes.length]) {
          push(bytes.subarray(offset, offset + chunkBytes));
          if (flushesEachChunk) flush();
          offset += chunkBytes;
        }
        end();
        expect(events.map((event) => event.text).join("")).toBe(bytes.toString("utf8"));
      },
    ),
  );
});

test("redacts a secret that is split over chunks", () => {
  const { push, flush, end, text } = setUp();
  for (const piece of ["x ", secret.slice(0, 9), secret.slice(9), " y"]) {
    push(piece);
    flush();
  }
  end();
  expect(text()).toBe("x [redacted:PW] y");
});

test("keeps bytes that are not UTF-8", () => {
  const { events, push, end } = setUp();
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc3]);
  push(bytes);
  end();
  expect(Buffer.concat(events.map(getOutputBytes))).toEqual(bytes);
});

test("keeps the head and the tail of output beyond the limit, and records how much is missing", () => {
  const { events, push, end, text } = setUp({ maxBytes: 1000 });
  const total = 200_000;
  for (let offset = 0; offset < total; offset += 7) push("abcdefg");
  end();
  const skipped = events.find((event) => event.skipped)!.skipped!;
  const keptBytes = events.map((event) => event.text!.length).reduce((sum, length) => sum + length, 0);
  expect(skipped + keptBytes).toBe(Math.ceil(total / 7) * 7);
  expect(keptBytes).toBe(1000);
  expect(text()).toMatch(/^abcdefg.*\n\[\.\.\. \d+ bytes not kept \.\.\.\]\n.*abcdefg$/s);
});

test("shows no part of a secret that lies across the end of the head or the beginning of the tail", () => {
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 600 }), fc.integer({ min: 400, max: 600 }), (before, after) => {
      const { push, end, text } = setUp({ maxBytes: 1000 });
      push(`${".".repeat(before)}${secret}${"-".repeat(50_000)}${secret}${".".repeat(after)}`);
      end();
      // Four consecutive characters count as part of the secret; the redaction mark names it.
      expect(text().replaceAll("[redacted:PW]", "")).not.toMatch(/hunt|unte|nter|ter2|er2-|r2-h|2-hu|-hun/);
    }),
  );
});
