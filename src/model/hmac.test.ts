import { createHash, createHmac } from "node:crypto";
import { assert, nat, property, uint8Array } from "fast-check";
import { expect, it } from "vitest";
import { createMac, sha256 } from "./hmac.ts";

const bytes = uint8Array({ maxLength: 2200 });

it("hashes like node:crypto at all lengths around a block and for random input", () => {
  for (let length = 0; length <= 200; length += 1) {
    const message = new Uint8Array(length).fill(length);
    expect(Buffer.from(sha256(message))).toEqual(createHash("sha256").update(message).digest());
  }
  assert(
    property(bytes, (message) => {
      expect(Buffer.from(sha256(message))).toEqual(createHash("sha256").update(message).digest());
    }),
  );
});

it("computes the same HMAC as node:crypto for keys of any length and messages at any buffer offset", () => {
  assert(
    property(uint8Array({ minLength: 1, maxLength: 200 }), bytes, nat(7), (key, message, offset) => {
      const shifted = new Uint8Array(message.length + offset);
      shifted.set(message, offset);
      const expected = createHmac("sha256", key).update(message).digest();
      const mac = createMac(key);
      for (const _call of [1, 2]) expect(Buffer.from(mac(shifted.subarray(offset)))).toEqual(expected);
    }),
  );
});
