/** What it costs to read a JSON text, beyond its length. */
export interface JsonLimits {
  depth: number;
  /** Members of lists and objects. */
  values: number;
  /** Different names of members: each new one costs a parser twenty times what a value costs. */
  names: number;
}

/** More than anybody sends on purpose. */
export const maxJson: JsonLimits = { depth: 64, values: 500_000, names: 25_000 };

/** Unknown outside this process, so that nobody can choose names that count as one. */
const seed = Math.floor(Math.random() * 2 ** 31);
const factor = Math.floor(Math.random() * 2 ** 30) * 2 + 1;

/** Which of the limits a text passes first; null: none. A text that is not JSON is for the parser to refuse. */
export function findExceededLimit(bytes: Uint8Array, limits = maxJson): keyof JsonLimits | null {
  const names = new Set<number>();
  let [depth, values, hash, quoted] = [0, 0, 0, false];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (quoted) {
      if (byte === 0x22) quoted = false;
      else {
        hash = Math.imul(hash ^ byte, factor) ^ (hash >>> 15);
        if (byte === 0x5c) at += 1;
      }
      continue;
    }
    switch (byte) {
      case 0x22: // "
        [quoted, hash] = [true, seed];
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
