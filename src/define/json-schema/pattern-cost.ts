/**
 * An upper bound on the steps a regular expression takes for a text of this length. Infinity if there is no simple bound:
 * for a repeated group with alternatives, a lookahead or lookbehind, or a backreference.
 */
export function patternCost(pattern: string, length: number): number {
  const reader: Reader = { pattern, at: 0, size: 1, length };
  const ways = readChoice(reader);
  const isAnchored = pattern.startsWith("^") && !pattern.includes("|");
  // an unbalanced bracket: the engine reports it
  return reader.at < pattern.length ? Infinity : ways * reader.size * (isAnchored ? 1 : length + 1);
}

interface Reader {
  pattern: string;
  at: number;
  /** The number of elements to match, including fixed repetitions. */
  size: number;
  length: number;
}

/** The number of ways it can match from one position. A failing match tries them one after another. */
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
  if (opening === undefined) return giveUp(reader);
  reader.at += opening.length;
  const ways = readChoice(reader);
  if (reader.pattern[reader.at] !== ")") return giveUp(reader);
  reader.at += 1;
  return ways;
}

function giveUp(reader: Reader): number {
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
  // an element with a single way per length has as many ways as there are lengths
  if (ways > 1) return max <= 1 ? ways + 1 : Infinity;
  return Math.min(max, reader.length) - Math.min(min, reader.length) + 1;
}
