import { redactionMarkStart } from "../model/redaction-mark.ts";

/**
 * Recognizes one kind of secret. A matcher names the four bytes that its text starts with. The scan finds those and the
 * matcher decides from there. It may look back at most `leftContext` bytes from the start of its secret. If the text
 * ends too early to decide, it says so, which makes streaming exact.
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
  /** More bytes may follow. */
  open: boolean;
  /** The end of the secrets that start before the current position. */
  coveredEnd: number;
  /** The last run of each class. It keeps a text with many anchors from being read again from each of them. */
  runs: Map<ByteClass, { start: number; end: number }>;
}

export function viewOf(bytes: Uint8Array, open: boolean, coveredEnd = 0): View {
  return { bytes, open, coveredEnd, runs: new Map() };
}

/**
 * Found, undecided (a possible secret starts there or later), or nothing. If the text ends before any byte of the secret
 * itself, the verdict is nothing too: the context keeps the anchor, so the next chunk tries it again.
 */
export type Verdict = Span | Undecided | undefined;

export interface Span {
  start: number;
  end: number;
  /** `undefined` for the mark of an earlier redaction, which stays as it is. */
  mark: string | undefined;
  /** Which name wins if two start together: exact values, then shapes, then assignments. */
  rank: number;
}

export interface Undecided {
  undecidedFrom: number;
}

export const leftContext = 256;

/** The text does not match. */
export const failed = -1;
/** The text ends too early to decide. */
export const more = -2;

/** Returns the offset after `literal` if it is at `at`, `failed` if it is not, or `more` if the text ends within it. */
export function readLiteral(text: View, at: number, literal: string): number {
  const { bytes } = text;
  const available = Math.min(literal.length, bytes.length - at);
  for (let i = 0; i < available; i++) {
    if (bytes[at + i] !== literal.charCodeAt(i)) return failed;
  }
  if (available === literal.length) return at + available;
  return text.open ? more : failed;
}

/** Reads as many bytes of a class as there are, without backtracking. Stops before an earlier mark. */
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

/** Shorter runs are not cached. */
const longRun = 1024;

/** Is there a byte of another class? */
export function hasOther(text: View, at: number, end: number, bytes: ByteClass): boolean {
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

/** Every byte except spaces, control characters and the given ones. */
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
