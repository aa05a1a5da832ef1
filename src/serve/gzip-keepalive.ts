import { createDeflateRaw, crc32, type DeflateRaw } from "node:zlib";

/** RFC 1952: deflated, no name, no time, made by an unknown system. */
export const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** RFC 1951: a stored block of no bytes which is not the last. Any number of them may come before the others. */
export const emptyDeflateBlock = Buffer.from([0, 0, 0, 0xff, 0xff]);

type Chunks = AsyncIterable<Uint8Array>;

/** What comes after the beginning and the empty blocks, as the middle of a pipeline. Quick rather than small. */
export function gzipBody(): [(plain: Chunks) => Chunks, DeflateRaw, (packed: Chunks) => Chunks] {
  let sum = 0;
  let size = 0;
  return [counted, createDeflateRaw({ level: 1 }), ended];

  async function* counted(plain: Chunks): Chunks {
    for await (const chunk of plain) {
      sum = crc32(chunk, sum);
      size += chunk.length;
      yield chunk;
    }
  }

  async function* ended(packed: Chunks): Chunks {
    yield* packed;
    const end = Buffer.alloc(8);
    end.writeUInt32LE(sum, 0);
    end.writeUInt32LE(size % 2 ** 32, 4);
    yield end;
  }
}
