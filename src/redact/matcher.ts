import { redactionMarkStart } from "../model/redaction-mark.ts";

/**
 * Recognizes one kind of secret. Each text that it matches contains an anchor of four bytes. The scan finds the anchor,
 * and the matcher decides from there. It may look back at most `leftContext` bytes from the start of its secret. If the
 * text ends too early to decide, it returns an `Undecided`, which makes streaming exact.
 */
export interface Matcher {
  /** Latin-1 strings of exactly four characters. */
  anchors(): Iterable<string>;
  /** Whether the secret starts within its anchor instead of after it. A stream then holds back a partial anchor. */
  startsInAnchor: boolean;
  match(text: View, at: number): Verdict;
}

export interface View {
  bytes: Uint8Array;
  /** Whether more bytes may follow. */
  open: boolean;
  /** The end of the secrets that start before the current position. */
  coveredEnd: number;
  /** A cache of the last run of each class, so that text with many anchors is not read again for each of them. */
  runs: Map<ByteClass, { start: number; end: number }>;
}

export function createView(bytes: Uint8Array, open: boolean, coveredEnd = 0): View {
  return { bytes, open, coveredEnd, runs: new Map() };
}

/**
 * A secret, undecided (a secret may start at that position or later), or `undefined` for no secret. If the text ends
 * before the first byte of the secret itself, the verdict is `undefined` too: the stream keeps the anchor as context,
 * so the next chunk tries it again.
 */
export type Verdict = Span | Undecided | undefined;

export interface Span {
  start: number;
  end: number;
  /** `undefined` for the mark of an earlier redaction, which stays unchanged. */
  mark: string | undefined;
  /** If two secrets start together, the mark of the lower rank is used: exact values, then shapes, then assignments. */
  rank: number;
}

export interface Undecided {
  undecidedFrom: number;
}

export const leftContext = 256;

/** The text does not match. */
export const noMatch = -1;
/** The text ends too early to decide. */
export const needsMore = -2;

/**
 * Returns the offset after `literal` if the text has it at `at`, `noMatch` if not, or `needsMore` if the text ends within
 * it.
 */
export function readLiteral(text: View, at: number, literal: string): number {
  const { bytes } = text;
  const available = Math.min(literal.length, bytes.length - at);
  for (let i = 0; i < available; i++) {
    if (bytes[at + i] !== literal.charCodeAt(i)) return noMatch;
  }
  if (available === literal.length) return at + available;
  return text.open ? needsMore : noMatch;
}

/** Reads the longest run of bytes of a class, without backtracking. Stops before the mark of an earlier redaction. */
export function readRun(text: View, at: number, allowedBytes: ByteClass, min: number, max: number): number {
  const { bytes } = text;
  const limit = Math.min(bytes.length, at + max);
  const cachedRun = max < minCachedRun ? undefined : text.runs.get(allowedBytes);
  const isCached = cachedRun !== undefined && cachedRun.start <= at && at <= cachedRun.end;
  let end = isCached ? Math.min(cachedRun.end, limit) : at;
  while (end < limit && allowedBytes[bytes[end]!] === 1) {
    if (bytes[end] === openingBracket) {
      const mark = readLiteral(text, end, redactionMarkStart);
      if (mark === needsMore) return needsMore;
      if (mark !== noMatch) break;
    }
    end++;
  }
  if (max >= minCachedRun && !(isCached && end <= cachedRun.end))
    text.runs.set(allowedBytes, { start: isCached ? cachedRun.start : at, end });
  if (end === bytes.length && end < at + max && text.open) return needsMore;
  return end - at < min ? noMatch : end;
}

/** Runs with a lower maximum are not cached. */
const minCachedRun = 1024;

/** Reports whether the range contains a byte that is not in the class. */
export function hasByteOutside(text: View, at: number, end: number, bytes: ByteClass): boolean {
  return readRun({ ...text, open: false }, at, bytes, 0, Infinity) < end;
}

export type ByteClass = Uint8Array;

/** Builds a class from ranges such as `a-z0-9_`. A dash at the end means itself. */
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
  return bytes.map((member) => 1 - member);
}

/** All bytes except spaces, control characters and the excluded ones. */
export function visibleExcept(excluded: string): ByteClass {
  const table = new Uint8Array(256).fill(1, 0x21);
  table[0x7f] = 0;
  for (let i = 0; i < excluded.length; i++) table[excluded.charCodeAt(i)] = 0;
  return table;
}

export function toLatin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

const openingBracket = 0x5b;

export function createMark(name: string): string {
  return `${redactionMarkStart}${name.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, 128)}]`;
}
