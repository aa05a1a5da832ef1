/**
 * How many steps a regular expression may take at most for a text of this length; Infinity where that cannot be said by a
 * look at it: a repeated group with a choice in it, a look ahead or behind, a reference to a group.
 */
export function patternCost(pattern: string, length: number): number {
  const reader: Reader = { pattern, at: 0, size: 1, length };
  const ways = readChoice(reader);
  const isAnchored = pattern.startsWith("^") && !pattern.includes("|");
  // a bracket too many: the engine says what is wrong with it
  return reader.at < pattern.length ? Infinity : ways * reader.size * (isAnchored ? 1 : length + 1);
}

interface Reader {
  pattern: string;
  at: number;
  /** How much there is to match, with what is repeated a fixed number of times. */
  size: number;
  length: number;
}

/** In how many ways it can match from one place: what it tries one after the other where it fails. */
function readChoice(reader: Reader): number {
  let ways = readSequence(reader);
  while (reader.pattern[reader.at] === "|") {
    reader.at += 1;
    ways += readSequence(reader);
  }
  return ways;
}

function readSequence(reader: Reader): number {
  let ways = 1;
  for (let next = reader.pattern[reader.at]; next !== undefined && next !== "|" && next !== ")";) {
    ways *= repeated(readOne(reader, next), reader);
    next = reader.pattern[reader.at];
  }
  return ways;
}

function readOne(reader: Reader, first: string): number {
  reader.size += 1;
  if (first === "(") return readGroup(reader);
  const rest = reader.pattern.slice(reader.at);
  const whole = (first === "[" ? oneClass : first === "\\" ? oneEscape : /^[\s\S]/u).exec(rest)?.[0];
  reader.at += whole?.length ?? rest.length;
  return whole === undefined || /^\\(?:[1-9]|k)/.test(whole) ? Infinity : 1;
}

const oneClass = /^\[(?:[^\]\\]|\\[\s\S])*\]/;
const oneEscape = /^\\(?:[pPu]\{[^}]*\}|[\s\S])/;

function readGroup(reader: Reader): number {
  const opening = /^\((?:\?:|\?<[A-Za-z_]\w*>|(?!\?))/.exec(reader.pattern.slice(reader.at))?.[0];
  if (opening === undefined) return readNoFurther(reader);
  reader.at += opening.length;
  const ways = readChoice(reader);
  if (reader.pattern[reader.at] !== ")") return readNoFurther(reader);
  reader.at += 1;
  return ways;
}

function readNoFurther(reader: Reader): number {
  reader.at = reader.pattern.length;
  return Infinity;
}

function repeated(ways: number, reader: Reader): number {
  const [whole, sign, least = "", open, most = ""] =
    /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(reader.pattern.slice(reader.at)) ?? [];
  if (whole === undefined) return ways;
  reader.at += whole.length;
  if (sign === "?") return ways + 1;
  const [min, max] =
    sign === undefined ? [Number(least), open === "" ? Number(least) : Number(most || Infinity)] : [0, Infinity];
  reader.size += min;
  // what has one way only for each length has as many ways as lengths
  if (ways > 1) return max <= 1 ? ways + 1 : Infinity;
  return Math.min(max, reader.length) - Math.min(min, reader.length) + 1;
}
