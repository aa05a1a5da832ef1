import * as fc from "fast-check";
import { expect, test } from "vitest";
import { keepEnds } from "./keep-ends.ts";

const keepChunks = (
  maxBytes: number,
  chunks: readonly Uint8Array[],
): ReturnType<ReturnType<typeof keepEnds>["result"]> => {
  const buffer = keepEnds(maxBytes);
  for (const chunk of chunks) buffer.push(chunk);
  return buffer.result();
};

test("keeps everything up to the limit, and beyond it the exact start and end of the stream", () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 200 }), chunks, (maxBytes, parts) => {
      const whole = Buffer.concat(parts);
      const originals = parts.map((part) => Buffer.from(part));
      const kept = keepChunks(maxBytes, parts);
      const head = Buffer.from(kept.head);
      const tail = Buffer.from(kept.tail);
      expect(kept.totalBytes).toBe(whole.length);
      expect(kept.truncated).toBe(whole.length > maxBytes);
      expect(head.equals(whole.subarray(0, head.length))).toBe(true);
      expect(tail.equals(whole.subarray(whole.length - tail.length))).toBe(true);
      if (kept.truncated) expect(head.length + tail.length).toBeGreaterThanOrEqual(maxBytes - 6);
      else expect(head.length).toBe(whole.length);
      // Other readers of the stream share the chunks, so they must not change.
      expect(parts.every((part, index) => originals[index]!.equals(part))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("keeps the order of mixed large and small chunks", () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 4_000, max: 70_000 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 150_000 }), sizes, (maxBytes, lengths) => {
      let next = 0;
      // Below 0x80, so that no byte looks like the middle of a character.
      const parts = lengths.map((length) => Uint8Array.from({ length }, () => (next += 1) % 127));
      const whole = Buffer.concat(parts);
      const { head, tail, totalBytes } = keepChunks(maxBytes, parts);
      expect(totalBytes).toBe(whole.length);
      expect(Buffer.compare(head, whole.subarray(0, head.length))).toBe(0);
      expect(Buffer.compare(tail, whole.subarray(whole.length - tail.length))).toBe(0);
      expect(head.length + tail.length).toBe(Math.min(maxBytes, whole.length));
    }),
    { numRuns: 60 },
  );
});

test("never splits a character", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 64 }),
      fc.integer({ min: 1, max: 9 }),
      fc.string({ unit: "grapheme", minLength: 30, maxLength: 80 }),
      (maxBytes, size, text) => {
        const bytes = Buffer.from(text);
        const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        const { head, tail } = keepChunks(maxBytes, parts);
        const strict = new TextDecoder("utf-8", { fatal: true });
        expect(text.startsWith(strict.decode(head))).toBe(true);
        expect(text.endsWith(strict.decode(tail))).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("keeps bytes that are not UTF-8 completely", () => {
  const { head, tail } = keepChunks(10, [Buffer.alloc(40, 0x80)]);
  expect([head.length, tail.length]).toEqual([5, 5]);
});
