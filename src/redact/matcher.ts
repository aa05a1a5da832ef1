import { redactionMarkStart } from "../model/redaction-mark.ts";

/**
 * How something secret is recognised. A matcher names the four bytes its text begins with (the scan finds
 * those), and then decides from there. It may look at most `leftContext` bytes behind where its secret
 * starts; where the text ends too early to decide, it says so, which is all a stream needs to be exact.
 */
export interface Matcher {
  /** Latin-1 strings of exactly four characters. */
  anchors(): Iterable<string>;
  /** The secret starts within its anchor, not behind it: a stream holds back what may become one. */
  startsInAnchor: boolean;
  match(text: View, at: number): Verdict;
}

export interface View {
  bytes: Uint8Array;
  /** More bytes may follow. */
  open: boolean;
  /** How far the secrets reach that start before the place being looked at. */
  coveredEnd: number;
  /** The run of each class that was read last: a text of nothing but beginnings is not read anew from each of them. */
  runs: Map<ByteClass, { start: number; end: number }>;
}

export function viewOf(bytes: Uint8Array, open: boolean, coveredEnd = 0): View {
  return { bytes, open, coveredEnd, runs: new Map() };
}

/**
 * Found, undecided (whatever may become secret starts there or later), or nothing. Where the text ends before
 * anything of the secret itself was seen, that is nothing too: the context brings the anchor up again.
 */
export type Verdict = Span | Undecided | undefined;

export interface Span {
  start: number;
  end: number;
  /** `undefined`: a mark of an earlier redaction, left alone as a whole. */
  mark: string | undefined;
  /** Which name wins where two start together: exact values before shapes before assignments. */
  rank: number;
}

export interface Undecided {
  undecidedFrom: number;
}

export const leftContext = 256;

export const failed = -1;
export const more = -2;

/** The offset behind `literal` if it stands at `at`, else `failed`, or `more` where the text ends within it. */
export function readLiteral(text: View, at: number, literal: string): number {
  const { bytes } = text;
  const available = Math.min(literal.length, bytes.length - at);
  for (let i = 0; i < available; i++) {
    if (bytes[at + i] !== literal.charCodeAt(i)) return failed;
  }
  if (available === literal.length) return at + available;
  return text.open ? more : failed;
}

/** Reads as many bytes of a class as there are, never giving one back; stops before an earlier mark. */
export function readRun(text: View, at: number, bytesAllowed: ByteClass, min: number, max: number): number {
  const { bytes } = text;
  const limit = Math.min(bytes.length, at + max);
  const known = max < longRun ? undefined : text.runs.get(bytesAllowed);
  const within = known !== undefined && known.start <= at && at <= known.end;
  let end = within ? Math.min(known.end, limit) : at;
  while (end < limit && bytesAllowed[bytes[end]!] === 1) {
    if (bytes[end] === openingBracket) {
      const mark = readLiteral(text, end, redactionMarkStart);
      if (mark === more) return more;
      if (mark !== failed) break;
    }
    end++;
  }
  if (max >= longRun && !(within && end <= known.end))
    text.runs.set(bytesAllowed, { start: within ? known.start : at, end });
  if (end === bytes.length && end < at + max && text.open) return more;
  return end - at < min ? failed : end;
}

/** Shorter ones are read at once. */
const longRun = 1024;

/** Whether a byte of another class stands there. */
export function hasOther(text: View, at: number, end: number, bytes: ByteClass): boolean {
  return readRun({ ...text, open: false }, at, bytes, 0, Infinity) < end;
}

export type ByteClass = Uint8Array;

/** A class from ranges such as `a-z0-9_`; a dash stands last to mean itself. */
export function byteClass(ranges: string): ByteClass {
  const table = new Uint8Array(256);
  for (let i = 0; i < ranges.length; i++) {
    const first = ranges.charCodeAt(i);
    const isRange = ranges[i + 1] === "-" && i + 2 < ranges.length;
    table.fill(1, first, (isRange ? ranges.charCodeAt(i + 2) : first) + 1);
    if (isRange) i += 2;
  }
  return table;
}

export function complement(bytes: ByteClass): ByteClass {
  return bytes.map((one) => 1 - one);
}

/** Every byte but blanks, control characters and the given ones. */
export function visibleExcept(excluded: string): ByteClass {
  const table = new Uint8Array(256).fill(1, 0x21);
  table[0x7f] = 0;
  for (let i = 0; i < excluded.length; i++) table[excluded.charCodeAt(i)] = 0;
  return table;
}

export function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

const openingBracket = 0x5b;

export function markOf(name: string): string {
  return `${redactionMarkStart}${name.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 128)}]`;
}
