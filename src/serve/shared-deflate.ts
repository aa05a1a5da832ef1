import { constants, deflateRawSync } from "node:zlib";

/** Compresses the bytes of event streams, once for all readers that get the same bytes. */
export interface SharedDeflate {
  /** Starts the zlib stream (RFC 1950) of one reader. */
  open(): DeflateStream;
}

/** Every chunk can be decoded completely as soon as it arrives. */
export interface DeflateStream {
  readonly header: Uint8Array;
  pack(bytes: Uint8Array): Uint8Array;
  /** Call this once, at the end. Contains the checksum of everything packed. */
  trailer(): Uint8Array;
}

interface Block {
  packed: Uint8Array;
  checksum: number;
}

/** A 32 KB window, fastest compression. */
const header = Buffer.from([0x78, 0x01]);
const finalBlock = [0x03, 0x00];
/** A deflate block does not refer to earlier ones, so a small window is enough, and it is allocated faster. */
const blockOptions = { level: 1, windowBits: 12, memLevel: 5, finishFlush: constants.Z_SYNC_FLUSH };

/**
 * Remembers the compressed form of a buffer as long as the buffer itself is in use. The buffer must not change
 * during that time.
 */
export function createSharedDeflate(): SharedDeflate {
  const blocks = new WeakMap<Uint8Array, Block>();

  function packOnce(bytes: Uint8Array): Block {
    let block = blocks.get(bytes);
    if (block === undefined) {
      block = { packed: deflateRawSync(bytes, blockOptions), checksum: adler32(bytes) };
      blocks.set(bytes, block);
    }
    return block;
  }

  return {
    open() {
      let checksum = 1;
      return {
        header,
        pack(bytes) {
          const block = packOnce(bytes);
          checksum = combineAdler32(checksum, block.checksum, bytes.length);
          return block.packed;
        },
        trailer() {
          const trailer = Buffer.from([...finalBlock, 0, 0, 0, 0]);
          trailer.writeUInt32BE(checksum, finalBlock.length);
          return trailer;
        },
      };
    },
  };
}

const adlerBase = 65521;
/** This many bytes can be added up before the sums exceed 32 bits. */
const adlerRun = 5552;

/** The checksum of zlib streams. Node exports only CRC-32, whose combination is expensive. */
function adler32(bytes: Uint8Array): number {
  let low = 1;
  let high = 0;
  for (let from = 0; from < bytes.length; from += adlerRun) {
    const end = Math.min(from + adlerRun, bytes.length);
    for (let index = from; index < end; index += 1) {
      low += bytes[index]!;
      high += low;
    }
    low %= adlerBase;
    high %= adlerBase;
  }
  return toChecksum(low, high);
}

/** Returns the checksum of two concatenated texts, from their checksums and the length of the second. */
function combineAdler32(first: number, second: number, secondLength: number): number {
  const [low1, high1] = [first & 0xffff, first >>> 16];
  const [low2, high2] = [second & 0xffff, second >>> 16];
  const low = (low1 + low2 - 1 + adlerBase) % adlerBase;
  // Each byte of the second text adds the sum of the first once more. The product is below 2^53.
  const high = (high1 + high2 + (secondLength % adlerBase) * (low1 - 1 + adlerBase)) % adlerBase;
  return toChecksum(low, high);
}

function toChecksum(low: number, high: number): number {
  return (high * 0x10000 + low) >>> 0;
}
