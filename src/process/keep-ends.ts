import type { CapturedOutput } from "../model/process.ts";

/** Buffers the beginning and the end of a stream of any length. */
export interface EndsBuffer {
  push(chunk: Uint8Array): void;
  readonly totalBytes: number;
  result(): CapturedOutput;
}

/** Keeps everything up to `maxBytes`. Of a longer stream, keeps the first and the last `maxBytes / 2`. */
export function keepEnds(maxBytes: number): EndsBuffer {
  const headBytes = Math.ceil(maxBytes / 2);
  const head = keepHead(maxBytes);
  const tail = keepTail(maxBytes - headBytes);
  let totalBytes = 0;
  return {
    get totalBytes() {
      return totalBytes;
    },
    push(chunk) {
      const room = maxBytes - totalBytes;
      totalBytes += chunk.length;
      if (chunk.length <= room) return head.push(chunk);
      if (room >= 0) {
        // The stream is now longer than maxBytes: split the buffered bytes into head and tail.
        head.push(chunk.subarray(0, room));
        tail.push(head.bytes().subarray(headBytes));
        tail.push(chunk.subarray(room));
      } else tail.push(chunk);
    },
    result() {
      if (totalBytes <= maxBytes) return { head: head.bytes(), tail: new Uint8Array(0), totalBytes, truncated: false };
      const first = head.bytes().subarray(0, headBytes);
      const last = tail.bytes();
      return {
        head: first.subarray(0, findWholeEnd(first)),
        tail: last.subarray(findWholeStart(last)),
        totalBytes,
        truncated: true,
      };
    },
  };
}

/** Keeps the first bytes in a growing buffer. The first chunk is used without a copy, because most commands write only once. */
function keepHead(maxBytes: number): { push(chunk: Uint8Array): void; bytes(): Uint8Array } {
  let buffer = new Uint8Array(0);
  let used = 0;
  return {
    push(chunk) {
      const needed = used + chunk.length;
      if (used === 0) buffer = chunk as Uint8Array<ArrayBuffer>; // Pipes never use shared memory.
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
/** Smaller chunks are copied into shared blocks, because each separate chunk has a memory overhead. */
const minSeparateBytes = 8_192;

/** Keeps the last bytes in a queue of blocks, so that dropping old bytes copies nothing. */
export function keepTail(maxBytes: number): { push(chunk: Uint8Array): void; bytes(): Uint8Array } {
  const blocks: Uint8Array[] = [];
  let length = 0;
  /** Collects small chunks. The last block is a view of it. */
  let openBlock: Uint8Array | undefined;
  let filled = 0;
  const add = (chunk: Uint8Array): void => {
    if (chunk.length >= minSeparateBytes) {
      openBlock = undefined;
      blocks.push(chunk);
      return;
    }
    if (openBlock === undefined || filled + chunk.length > openBlock.length) {
      openBlock = new Uint8Array(blockBytes);
      filled = 0;
    } else blocks.pop();
    openBlock.set(chunk, filled);
    filled += chunk.length;
    blocks.push(openBlock.subarray(0, filled));
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
      let offset = 0;
      for (const block of blocks) {
        bytes.set(block, offset);
        offset += block.length;
      }
      return bytes.subarray(length - Math.min(length, maxBytes));
    },
  };
}

/** Returns where the last complete UTF-8 character ends. Excludes a character whose end was cut off. */
export function findWholeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return getCharacterLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length; // The bytes are not UTF-8.
}

/** Returns where the first complete UTF-8 character starts. Excludes up to three bytes of a character whose start was cut off. */
export function findWholeStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < bytes.length && start < 4 && (bytes[start]! & 0xc0) === 0x80) start += 1;
  return start < 4 ? start : 0;
}

function getCharacterLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}
