import { byteClass, failed, latin1, markOf, more, readLiteral, readRun } from "./matcher.ts";
import type { Matcher, View } from "./matcher.ts";

/**
 * What stands between `-----BEGIN … PRIVATE KEY-----` and its end; the frame stays, to tell what was there.
 * A block that breaks off is redacted as far as its lines look like one.
 */
export const privateKeyMatcher: Matcher = {
  anchors: () => ["VATE"],
  startsInAnchor: false,
  match(text, at) {
    if (!/-----BEGIN [A-Z0-9 ]{0,24}PRI$/.test(latin1(text.bytes, Math.max(0, at - 48), at))) return undefined;
    const behindKey = readLiteral(text, at, "VATE KEY");
    if (behindKey < 0) return undefined;
    const block = readLiteral(text, behindKey, " BLOCK");
    if (block === more) return undefined;
    const start = readLiteral(text, block === failed ? behindKey : block, "-----");
    if (start < 0) return undefined;
    const end = readBody(text, start);
    if (end === more) return { undecidedFrom: start };
    return end === failed ? undefined : { start, end, mark: markOf("private-key"), rank: 1 };
  },
};

const longestBody = 32_768;

function readBody(text: View, start: number): number {
  let at = start;
  let end: number = failed;
  while (at - start < longestBody) {
    const line = readGap(text, at);
    if (line === more) return more;
    const frame = readLiteral(text, line, "-----END");
    if (frame === more) return more;
    if (frame !== failed) return end === failed ? failed : line;
    const behindLine = readLine(text, line);
    if (behindLine === more) return more;
    if (behindLine === failed) return end;
    at = behindLine;
    end = behindLine;
  }
  return end;
}

/** Line ends, as such or escaped, and the quotes of a block written over several strings. */
function readGap(text: View, at: number): number {
  let end = at;
  for (;;) {
    const blank = readRun(text, end, gapBytes, 0, longestBody);
    if (blank === more) return more;
    const escaped = readRun(text, blank, backslash, 1, 3);
    if (escaped === more) return more;
    if (escaped === failed) return blank;
    const letter = readRun(text, escaped, escapeLetters, 1, 1);
    if (letter === more) return more;
    if (letter === failed) return blank;
    end = letter;
  }
}

/** A line of base64, the short last one if the end follows, or a header such as `Proc-Type: 4,ENCRYPTED`. */
function readLine(text: View, at: number): number {
  const digits = readRun(text, at, base64, 1, 8192);
  if (digits === more || (digits !== failed && digits - at >= 16)) return digits;
  const name = readRun(text, at, headerName, 3, 30);
  const header = name < 0 ? name : readLiteral(text, name, ": ");
  if (header !== failed) return header === more ? more : readRun(text, header, headerValue, 0, 200);
  if (digits === failed) return failed;
  const behindGap = readGap(text, digits);
  const frame = behindGap < 0 ? behindGap : readLiteral(text, behindGap, "-----END");
  if (frame === more) return more;
  return frame !== failed || behindGap === text.bytes.length ? digits : failed;
}

const base64 = byteClass("A-Za-z0-9+/=");
const gapBytes = byteClass(" \t\r\n\"',");
const backslash = byteClass("\\");
const escapeLetters = byteClass("nrt\"'");
const headerName = byteClass("A-Za-z-");
const headerValue = byteClass(" -Z^-~");
