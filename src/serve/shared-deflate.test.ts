import { inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { createSharedDeflate } from "./shared-deflate.ts";

const texts = [
  "",
  "a",
  "id: 1\ndata: {}\n\n",
  "\u{1f411}é".repeat(3000),
  "x".repeat(200_000),
  Buffer.alloc(70_000, 0xff).toString("latin1"),
];

test("compresses a buffer once, and every reader gets a valid stream from where it joined", () => {
  const deflate = createSharedDeflate();
  const buffers = texts.map((text) => Buffer.from(text, "latin1"));
  const packed = buffers.map((bytes) => deflate.open().pack(bytes));
  for (let from = 0; from < buffers.length; from += 1) {
    const stream = deflate.open();
    const chunks = buffers.slice(from).map((bytes) => stream.pack(bytes));
    chunks.forEach((chunk, index) => expect(chunk).toBe(packed[from + index]));
    // `inflateSync` rejects a wrong checksum.
    const whole = inflateSync(Buffer.concat([stream.header, ...chunks, stream.trailer()]));
    expect(whole.equals(Buffer.concat(buffers.slice(from)))).toBe(true);
  }
});

test("computes the right checksum for buffers of random lengths and bytes", () => {
  const deflate = createSharedDeflate();
  let seed = 1;
  const next = (limit: number): number => (seed = (seed * 48271) % 2147483647) % limit;
  for (let round = 0; round < 50; round += 1) {
    const stream = deflate.open();
    const buffers = Array.from({ length: next(8) }, () =>
      Buffer.from(Array.from({ length: next(9000) }, () => next(256))),
    );
    const packed = buffers.map((bytes) => stream.pack(bytes));
    const whole = inflateSync(Buffer.concat([stream.header, ...packed, stream.trailer()]));
    expect(whole.equals(Buffer.concat(buffers))).toBe(true);
  }
});
