import type { Captured } from "../model/process.ts";

/** Keeps the beginning and the end of a stream of any length in at most `maxBytes`. */
export interface Keep {
  push(chunk: Uint8Array): void;
  readonly totalBytes: number;
  take(): Captured;
}

/** Everything up to `maxBytes`; past it the first half of that, and the last half. */
export function keepEnds(maxBytes: number): Keep {
  const headBytes = Math.ceil(maxBytes / 2);
  const start = keepStart(maxBytes);
  const end = keepEnd(maxBytes - headBytes);
  let totalBytes = 0;
  return {
    get totalBytes() {
      return totalBytes;
    },
    push(chunk) {
      const room = maxBytes - totalBytes;
      totalBytes += chunk.length;
      if (chunk.length <= room) return start.push(chunk);
      if (room >= 0) {
        // from here on there are two ends
        start.push(chunk.subarray(0, room));
        end.push(start.bytes().subarray(headBytes));
        end.push(chunk.subarray(room));
      } else end.push(chunk);
    },
    take() {
      if (totalBytes <= maxBytes) return { head: start.bytes(), tail: new Uint8Array(0), totalBytes, truncated: false };
      const head = start.bytes().subarray(0, headBytes);
      const tail = end.bytes();
      return {
        head: head.subarray(0, wholeEnd(head)),
        tail: tail.subarray(wholeStart(tail)),
        totalBytes,
        truncated: true,
      };
    },
  };
}

/** One buffer that grows. Most commands write once: then it is that chunk itself, which is not written to. */
function keepStart(maxBytes: number): { push(chunk: Uint8Array): void; bytes(): Uint8Array } {
  let buffer = new Uint8Array(0);
  let used = 0;
  return {
    push(chunk) {
      const needed = used + chunk.length;
      if (used === 0) buffer = chunk as Uint8Array<ArrayBuffer>; // pipes never give shared memory
      else {
        if (needed > buffer.length) {
          const larger = new Uint8Array(Math.min(maxBytes, Math.max(needed, buffer.length * 2, 4096)));
          larger.set(buffer.subarray(0, used));
          buffer = larger;
        }
        buffer.set(chunk, used);
      }
      used = needed;
    },
    bytes: () => buffer.subarray(0, used),
  };
}

const blockBytes = 65_536;
/** Chunks from this size on are kept as they are; smaller ones are copied together, as each costs memory of its own. */
const largeBytes = 8_192;

/** The last bytes, as a queue of blocks: what is dropped was never copied. */
export function keepEnd(maxBytes: number): { push(chunk: Uint8Array): void; bytes(): Uint8Array } {
  const blocks: Uint8Array[] = [];
  let length = 0;
  let open: Uint8Array | undefined; // where small chunks go; the last block is a part of it
  let filled = 0;
  const add = (chunk: Uint8Array): void => {
    if (chunk.length >= largeBytes) {
      open = undefined;
      blocks.push(chunk);
      return;
    }
    if (open === undefined || filled + chunk.length > open.length) {
      open = new Uint8Array(blockBytes);
      filled = 0;
    } else blocks.pop();
    open.set(chunk, filled);
    filled += chunk.length;
    blocks.push(open.subarray(0, filled));
  };
  return {
    push(chunk) {
      if (maxBytes === 0 || chunk.length === 0) return;
      add(chunk);
      length += chunk.length;
      while (length - blocks[0]!.length >= maxBytes) length -= blocks.shift()!.length;
    },
    bytes() {
      const bytes = new Uint8Array(length);
      let at = 0;
      for (const block of blocks) {
        bytes.set(block, at);
        at += block.length;
      }
      return bytes.subarray(length - Math.min(length, maxBytes));
    },
  };
}

/** Where the last whole character ends: a lead byte whose continuation was cut off is left out. */
export function wholeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return characterLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length; // four continuation bytes: not UTF-8, nothing to save
}

/** Where the first whole character starts: up to three continuation bytes of one that was cut are left out. */
export function wholeStart(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length && at < 4 && (bytes[at]! & 0xc0) === 0x80) at += 1;
  return at < 4 ? at : 0;
}

function characterLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}
