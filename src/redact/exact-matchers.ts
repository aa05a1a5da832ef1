import { toBase64Value, createNeedles, type Needle } from "./encodings.ts";
import { noMatch, createMark, needsMore, readLiteral, type Matcher, type View } from "./matcher.ts";

/** Matches one value in every encoding. */
export function createExactMatchers(name: string, value: string): Matcher[] {
  const mark = createMark(name);
  const matchers: Matcher[] = [];
  for (const needle of createNeedles(value).map(memoizeUnits)) {
    matchers.push(createNeedleMatcher(needle, mark));
    if (needle.wraps && needle.length >= minWrappedLength)
      matchers.push(createNeedleMatcher(dropFirstFourUnits(needle), mark));
  }
  return matchers;
}

/** Computes each unit only once. */
function memoizeUnits(needle: Needle): Needle {
  const spellingsByUnit: (readonly string[])[] = [];
  return { ...needle, getSpellings: (at) => (spellingsByUnit[at] ??= needle.getSpellings(at)) };
}

/** A line end within the first four digits hides them from the search, so the rest is searched for too. */
function dropFirstFourUnits(needle: Needle): Needle {
  return { ...needle, length: needle.length - 4, getSpellings: (at) => needle.getSpellings(at + 4) };
}

const minWrappedLength = 16;

function createNeedleMatcher(needle: Needle, mark: string): Matcher {
  return {
    anchors: () => listPrefixes(needle),
    startsInAnchor: true,
    match(text, at) {
      const end = readNeedle(text, at, needle);
      if (end === needsMore) return { undecidedFrom: at };
      return end === noMatch ? undefined : { start: at, end, mark, rank: 0 };
    },
  };
}

/** Lists the spellings of the first four bytes: with letters and digits unescaped, or everything escaped. */
function listPrefixes(needle: Needle): string[] {
  if (needle.prefixes !== undefined) return needle.prefixes;
  const prefixes: string[] = [];
  addPrefixes(prefixes, needle, "", 0, false);
  if (needle.getSpellings(0).some((spelling) => spelling.length > 1)) addPrefixes(prefixes, needle, "", 0, true);
  return prefixes;
}

function addPrefixes(prefixes: string[], needle: Needle, prefix: string, at: number, isEscaped: boolean): void {
  if (prefix.length >= 4) {
    prefixes.push(prefix.slice(0, 4));
    return;
  }
  if (at === needle.length) return;
  const spellings = needle.getSpellings(at);
  const plain = spellings.at(-1)!;
  if (!isEscaped && isLetterOrDigit(plain)) {
    addPrefixes(prefixes, needle, prefix + plain, at + 1, isEscaped);
    if (needle.wraps && spellings.length > 1) addPrefixes(prefixes, needle, prefix + spellings[0]!, at + 1, isEscaped);
    return;
  }
  for (const spelling of spellings) {
    if (!isEscaped || spelling.length > 1 || spellings.length === 1)
      addPrefixes(prefixes, needle, prefix + spelling, at + 1, isEscaped);
  }
}

function isLetterOrDigit(spelling: string): boolean {
  if (spelling.length !== 1) return false;
  const code = spelling.charCodeAt(0) | 0x20;
  return (code >= 0x61 && code <= 0x7a) || (spelling >= "0" && spelling <= "9");
}

/** Line ends, plain and escaped as in JSON. */
const lineEnds = ["\n", "\r\n", "\\n", "\\r\\n"];

function readNeedle(text: View, at: number, needle: Needle): number {
  let end = readOneOf(text, at, needle.getSpellings(0));
  for (let i = 1; i < needle.length && end >= 0; i++) {
    const spellings = needle.getSpellings(i);
    const next = readOneOf(text, end, spellings);
    end = next === noMatch && needle.wraps ? readWrapped(text, end, spellings) : next;
  }
  return end >= 0 && needle.overflow !== undefined ? readOverflow(text, end, needle.overflow) : end;
}

function readWrapped(text: View, at: number, spellings: readonly string[]): number {
  const afterLineEnd = readOneOf(text, at, lineEnds);
  return afterLineEnd < 0 ? afterLineEnd : readOneOf(text, afterLineEnd, spellings);
}

function readOneOf(text: View, at: number, literals: readonly string[]): number {
  let isUndecided = false;
  const first = text.bytes[at];
  for (const literal of literals) {
    if (first !== undefined && first !== literal.charCodeAt(0)) continue;
    if (literal.length === 1 && first !== undefined) return at + 1;
    const end = readLiteral(text, at, literal);
    if (end >= 0) return end;
    if (end === needsMore) isUndecided = true;
  }
  return isUndecided ? needsMore : noMatch;
}

/** Consumes the character that the last byte reaches into, and padding, so that no bit of the value remains. */
function readOverflow(text: View, at: number, overflow: { bits: number; value: number }): number {
  const { bytes } = text;
  if (at === bytes.length) return text.open ? needsMore : at;
  const value = toBase64Value(bytes[at]!);
  if (value < 0 || value >> (6 - overflow.bits) !== overflow.value) return at;
  let end = at + 1;
  while (end < bytes.length && end < at + 3 && bytes[end] === equalsSign) end++;
  return end === bytes.length && end < at + 3 && text.open ? needsMore : end;
}

const equalsSign = 0x3d;
