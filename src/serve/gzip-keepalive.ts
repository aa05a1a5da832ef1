import { createDeflateRaw, crc32, type DeflateRaw } from "node:zlib";

/** RFC 1952: deflate, no file name, no time, unknown operating system. */
export const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** RFC 1951: an empty stored block that is not the last one. Any number may precede the data, so it works as a keepalive. */
export const emptyDeflateBlock = Buffer.from([0, 0, 0, 0xff, 0xff]);

type Chunks = AsyncIterable<Uint8Array>;

/** The pipeline stages that produce the rest of the gzip stream. Optimized for speed, not size. */
export function createGzipBody(): [(plain: Chunks) => Chunks, DeflateRaw, (packed: Chunks) => Chunks] {
  let sum = 0;
  let size = 0;
  return [checksum, createDeflateRaw({ level: 1 }), appendTrailer];

  async function* checksum(plain: Chunks): Chunks {
    for await (const chunk of plain) {
      sum = crc32(chunk, sum);
      size += chunk.length;
      yield chunk;
    }
  }

  async function* appendTrailer(compressed: Chunks): Chunks {
    yield* compressed;
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(sum, 0);
    trailer.writeUInt32LE(size % 2 ** 32, 4);
    yield trailer;
  }
}
