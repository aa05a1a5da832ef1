import { byteClass, noMatch, toLatin1, createMark, needsMore, readLiteral, readRun } from "./matcher.ts";
import type { Matcher, View } from "./matcher.ts";

/**
 * Matches the body between the `-----BEGIN … PRIVATE KEY-----` line and the end line, which stay. An
 * incomplete block is redacted up to the first line that does not look like a key.
 */
export const privateKeyMatcher: Matcher = {
  anchors: () => ["VATE"],
  startsInAnchor: false,
  match(text, at) {
    if (!/-----BEGIN [A-Z0-9 ]{0,24}PRI$/.test(toLatin1(text.bytes, Math.max(0, at - 48), at))) return undefined;
    const afterKey = readLiteral(text, at, "VATE KEY");
    if (afterKey < 0) return undefined;
    const block = readLiteral(text, afterKey, " BLOCK");
    if (block === needsMore) return undefined;
    const start = readLiteral(text, block === noMatch ? afterKey : block, "-----");
    if (start < 0) return undefined;
    const end = readBody(text, start);
    if (end === needsMore) return { undecidedFrom: start };
    return end === noMatch ? undefined : { start, end, mark: createMark("private-key"), rank: 1 };
  },
};

const maxBodyLength = 32_768;

function readBody(text: View, start: number): number {
  let at = start;
  let end: number = noMatch;
  while (at - start < maxBodyLength) {
    const line = readGap(text, at);
    if (line === needsMore) return needsMore;
    const afterEndMarker = readLiteral(text, line, "-----END");
    if (afterEndMarker === needsMore) return needsMore;
    if (afterEndMarker !== noMatch) return end === noMatch ? noMatch : line;
    const afterLine = readLine(text, line);
    if (afterLine === needsMore) return needsMore;
    if (afterLine === noMatch) return end;
    at = afterLine;
    end = afterLine;
  }
  return end;
}

/** Reads line ends, plain or escaped, and the quotes of a block that spans several strings. */
function readGap(text: View, at: number): number {
  let end = at;
  for (;;) {
    const blank = readRun(text, end, gapBytes, 0, maxBodyLength);
    if (blank === needsMore) return needsMore;
    const escaped = readRun(text, blank, backslash, 1, 3);
    if (escaped === needsMore) return needsMore;
    if (escaped === noMatch) return blank;
    const letter = readRun(text, escaped, escapeLetters, 1, 1);
    if (letter === needsMore) return needsMore;
    if (letter === noMatch) return blank;
    end = letter;
  }
}

/** Reads a line of base64, a short last line before the end, or a header such as `Proc-Type: 4,ENCRYPTED`. */
function readLine(text: View, at: number): number {
  const digits = readRun(text, at, base64Bytes, 1, 8192);
  if (digits === needsMore || (digits !== noMatch && digits - at >= 16)) return digits;
  const name = readRun(text, at, headerNameBytes, 3, 30);
  const header = name < 0 ? name : readLiteral(text, name, ": ");
  if (header !== noMatch) return header === needsMore ? needsMore : readRun(text, header, headerValueBytes, 0, 200);
  if (digits === noMatch) return noMatch;
  const afterGap = readGap(text, digits);
  const afterEndMarker = afterGap < 0 ? afterGap : readLiteral(text, afterGap, "-----END");
  if (afterEndMarker === needsMore) return needsMore;
  return afterEndMarker !== noMatch || afterGap === text.bytes.length ? digits : noMatch;
}

const base64Bytes = byteClass("A-Za-z0-9+/=");
const gapBytes = byteClass(" \t\r\n\"',");
const backslash = byteClass("\\");
const escapeLetters = byteClass("nrt\"'");
const headerNameBytes = byteClass("A-Za-z-");
const headerValueBytes = byteClass(" -Z^-~");
