/** Limits on the properties of a JSON text, besides its length, that make it expensive to parse. */
export interface JsonLimits {
  depth: number;
  /** Number of list items and object members. */
  values: number;
  /** Number of distinct member names. A new name costs the parser as much as twenty values. */
  names: number;
}

/** More than any legitimate request needs. */
export const defaultJsonLimits: JsonLimits = { depth: 64, values: 500_000, names: 25_000 };

/** Random per process, so that an attacker cannot craft names whose hashes collide. */
const seed = Math.floor(Math.random() * 2 ** 31);
const factor = Math.floor(Math.random() * 2 ** 30) * 2 + 1;

function mix(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, factor) ^ (hash >>> 15);
}

/** Returns the first limit that the text exceeds, or null. Does not validate the text: the parser does. */
export function findExceededLimit(bytes: Uint8Array, limits = defaultJsonLimits): keyof JsonLimits | null {
  const names = new Set<number>();
  let [depth, values, hash, isQuoted] = [0, 0, 0, false];
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]!;
    if (isQuoted) {
      if (byte === 0x22) isQuoted = false;
      else {
        hash = mix(hash, byte);
        if (byte === 0x5c) hash = mix(hash, bytes[(index += 1)] ?? 0); // An escaped quote does not end the name.
      }
      continue;
    }
    switch (byte) {
      case 0x22: // "
        [isQuoted, hash] = [true, seed];
        break;
      case 0x3a: // :
        names.add(hash);
        if (names.size > limits.names) return "names";
        break;
      case 0x2c: // ,
        values += 1;
        if (values > limits.values) return "values";
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth += 1;
        if (depth > limits.depth) return "depth";
        values += 1;
        if (values > limits.values) return "values";
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1;
        break;
    }
  }
  return null;
}
