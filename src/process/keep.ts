import type { Captured } from "../model/process.ts";

/** Keeps the beginning and the end of a stream of any length in at most `maxBytes`. */
export interface Keep {
  push(chunk: Uint8Array): void;
  readonly totalBytes: number;
  readonly truncated: boolean;
  take(): Captured;
}

/**
 * One buffer, grown up to `maxBytes` while everything fits. Once it is full its first half stays as it is
 * and its second half becomes a ring, so that what is dropped costs one copy and no memory.
 */
export function keepEnds(maxBytes: number): Keep {
  const headBytes = Math.ceil(maxBytes / 2);
  const ringBytes = maxBytes - headBytes;
  let buffer: Buffer = Buffer.alloc(0);
  let used = 0; // up to maxBytes
  let ringAt = 0; // where the oldest byte of the ring is
  let totalBytes = 0;

  const fill = (chunk: Uint8Array): void => {
    const needed = used + chunk.length;
    if (used === 0 && chunk.length <= maxBytes) {
      // most commands write once: no copy
      buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    } else {
      if (needed > buffer.length || used === buffer.length) buffer = grown(buffer, used, Math.min(maxBytes, Math.max(needed, buffer.length * 2, 4096)));
      buffer.set(chunk, used);
    }
    used = needed;
  };
  const turn = (chunk: Uint8Array): void => {
    if (ringBytes === 0) return;
    const kept = chunk.length > ringBytes ? chunk.subarray(chunk.length - ringBytes) : chunk;
    const upToEnd = Math.min(kept.length, ringBytes - ringAt);
    buffer.set(kept.subarray(0, upToEnd), headBytes + ringAt);
    if (upToEnd < kept.length) buffer.set(kept.subarray(upToEnd), headBytes);
    ringAt = (ringAt + kept.length) % ringBytes;
  };

  return {
    get totalBytes() {
      return totalBytes;
    },
    get truncated() {
      return totalBytes > maxBytes;
    },
    push(chunk) {
      totalBytes += chunk.length;
      const room = maxBytes - used;
      if (chunk.length <= room) return fill(chunk);
      if (room > 0) fill(chunk.subarray(0, room));
      turn(chunk.subarray(room));
    },
    take() {
      const truncated = totalBytes > maxBytes;
      if (!truncated) return { head: buffer.subarray(0, used), tail: new Uint8Array(0), totalBytes, truncated };
      const tail = Buffer.allocUnsafe(ringBytes);
      buffer.copy(tail, 0, headBytes + ringAt, maxBytes);
      buffer.copy(tail, ringBytes - ringAt, headBytes, headBytes + ringAt);
      const head = Buffer.from(buffer.subarray(0, headBytes));
      return { head: head.subarray(0, wholeEnd(head)), tail: tail.subarray(wholeStart(tail)), totalBytes, truncated };
    },
  };
}

function grown(buffer: Buffer, used: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size);
  buffer.copy(larger, 0, 0, used);
  return larger;
}

/** Where the last whole character ends: a lead byte whose continuation was cut off is left out. */
function wholeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return characterLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length; // four continuation bytes: not UTF-8, nothing to save
}

/** Where the first whole character starts: up to three continuation bytes of one that was cut are left out. */
function wholeStart(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length && at < 4 && (bytes[at]! & 0xc0) === 0x80) at += 1;
  return at < 4 ? at : 0;
}

function characterLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}
