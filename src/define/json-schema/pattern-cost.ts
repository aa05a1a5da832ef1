/**
 * Returns an upper bound on the steps that a regular expression takes for text of this length. Infinity if there is no
 * simple bound: for a repeated group with alternatives, a lookahead or lookbehind, or a backreference.
 */
export function estimatePatternCost(pattern: string, textLength: number): number {
  const reader: Reader = { pattern, position: 0, size: 1, textLength };
  const ways = readChoice(reader);
  const isAnchored = pattern.startsWith("^") && !pattern.includes("|");
  // If part of the pattern is left over, its brackets are unbalanced, which the engine reports.
  return reader.position < pattern.length ? Infinity : ways * reader.size * (isAnchored ? 1 : textLength + 1);
}

interface Reader {
  pattern: string;
  position: number;
  /** The number of elements to match, counting each as often as it must be repeated. */
  size: number;
  textLength: number;
}

/** Returns the number of ways the alternatives can match from one position. A failing match tries all of them. */
function readChoice(reader: Reader): number {
  let ways = readSequence(reader);
  while (reader.pattern[reader.position] === "|") {
    reader.position += 1;
    ways += readSequence(reader);
  }
  return ways;
}

function readSequence(reader: Reader): number {
  let ways = 1;
  for (let next = reader.pattern[reader.position]; next !== undefined && next !== "|" && next !== ")";) {
    const sizeBefore = reader.size;
    ways *= applyQuantifier(readElement(reader, next), reader, sizeBefore);
    next = reader.pattern[reader.position];
  }
  return ways;
}

function readElement(reader: Reader, first: string): number {
  reader.size += 1;
  if (first === "(") return readGroup(reader);
  const rest = reader.pattern.slice(reader.position);
  const whole = (first === "[" ? classPattern : first === "\\" ? escapePattern : /^[\s\S]/u).exec(rest)?.[0];
  reader.position += whole?.length ?? rest.length;
  return whole === undefined || /^\\(?:[1-9]|k)/.test(whole) ? Infinity : 1;
}

const classPattern = /^\[(?:[^\]\\]|\\[\s\S])*\]/;
const escapePattern = /^\\(?:[pPu]\{[^}]*\}|[\s\S])/;

function readGroup(reader: Reader): number {
  const opening = /^\((?:\?:|\?<[A-Za-z_]\w*>|(?!\?))/.exec(reader.pattern.slice(reader.position))?.[0];
  if (opening === undefined) return abandon(reader);
  reader.position += opening.length;
  const ways = readChoice(reader);
  if (reader.pattern[reader.position] !== ")") return abandon(reader);
  reader.position += 1;
  return ways;
}

function abandon(reader: Reader): number {
  reader.position = reader.pattern.length;
  return Infinity;
}

/** `sizeBefore` is the reader's size without the element. */
function applyQuantifier(ways: number, reader: Reader, sizeBefore: number): number {
  const [whole, symbol, minText = "", comma, maxText = ""] =
    /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(reader.pattern.slice(reader.position)) ?? [];
  if (whole === undefined) return ways;
  reader.position += whole.length;
  if (symbol === "?") return ways + 1;
  const [min, max] =
    symbol === undefined
      ? [Number(minText), comma === "" ? Number(minText) : Number(maxText || Infinity)]
      : [0, Infinity];
  reader.size = sizeBefore + (reader.size - sizeBefore) * Math.max(min, 1);
  // Repeating an element that can match in several ways has no simple bound.
  if (ways > 1) return max <= 1 ? ways + 1 : Infinity;
  // Otherwise there is one way for each number of repetitions.
  return Math.min(max, reader.textLength) - Math.min(min, reader.textLength) + 1;
}
