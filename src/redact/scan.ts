import { compileFastSearch, hashCount, hashKey, type FastSearch } from "./fast-search.ts";
import type { Matcher, Span, View } from "./matcher.ts";

/** The search index, built once from all matchers. */
export interface Index {
  /** One byte for each hash, set if an anchor has it. Rules out most ordinary text. */
  hashes: Uint8Array;
  byHash: Map<number, Anchor[]>;
  /** The first one, two and three bytes of anchors that a secret starts in. Built for the first stream. */
  prefixes: Set<number> | undefined;
  /** Used for long text. Compiled on first use. */
  fastSearch: FastSearch | undefined;
}

interface Anchor {
  /** The four bytes as a little-endian number. */
  key: number;
  matcher: Matcher;
}

export interface ScanResult {
  /** Sorted by start. Spans may overlap. */
  spans: Span[];
  /** All secrets that start before this position have been found. */
  decided: number;
}

export function createIndex(): Index {
  return { hashes: new Uint8Array(hashCount), byHash: new Map(), prefixes: undefined, fastSearch: undefined };
}

export function addMatchers(index: Index, matchers: readonly Matcher[]): void {
  for (const matcher of matchers) {
    for (const anchor of matcher.anchors()) addAnchor(index, anchor, matcher);
  }
  index.prefixes = undefined;
  index.fastSearch = undefined;
}

function addAnchor({ hashes, byHash }: Index, anchor: string, matcher: Matcher): void {
  const key =
    anchor.charCodeAt(0) | (anchor.charCodeAt(1) << 8) | (anchor.charCodeAt(2) << 16) | (anchor.charCodeAt(3) << 24);
  const hash = hashKey(key);
  const anchors = byHash.get(hash);
  if (anchors === undefined) byHash.set(hash, [{ key, matcher }]);
  else if (!anchors.some((added) => added.key === key && added.matcher === matcher)) anchors.push({ key, matcher });
  hashes[hash] = 1;
}

/** Finds all secrets that start at `from` or later. Earlier bytes are context. */
export function scan(index: Index, text: View, from: number): ScanResult {
  const search: Search = { index, text, from, spans: [], aheadSpans: [], decided: text.bytes.length, markEnd: 0 };
  if (text.bytes.length < minLongTextBytes) scanShort(search);
  else scanLong(search);
  if (text.open) holdBackPrefix(search);
  search.spans.sort(compareSpans);
  return search;
}

function scanShort(search: Search): void {
  const { bytes } = search.text;
  const { hashes } = search.index;
  if (bytes.length < 4) return;
  let key = (bytes[0]! << 8) | (bytes[1]! << 16) | (bytes[2]! << 24);
  for (let last = 3; last < bytes.length && last - 3 < search.decided; last++) {
    key = (key >>> 8) | (bytes[last]! << 24);
    if (hashes[hashKey(key)] !== 0) tryAnchor(search, last - 3, key);
  }
}

function scanLong(search: Search): void {
  const { bytes } = search.text;
  search.index.fastSearch ??= compileFastSearch(listKeys(search.index));
  search.index.fastSearch(bytes, (at) => {
    tryAnchor(search, at, bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    return at < search.decided;
  });
}

function listKeys({ byHash }: Index): number[] {
  return Array.from(byHash.values(), (anchors) => anchors.map(({ key }) => key)).flat();
}

const minLongTextBytes = 4096;

interface Search extends ScanResult {
  index: Index;
  text: View;
  from: number;
  /** Found secrets that start after the current position. */
  aheadSpans: Span[];
  /** The end of the last mark of an earlier redaction. */
  markEnd: number;
}

function tryAnchor(search: Search, at: number, key: number): void {
  if (at >= search.decided || at < search.markEnd) return;
  const anchors = search.index.byHash.get(hashKey(key));
  if (anchors === undefined) return;
  updateCoveredEnd(search, at);
  for (const anchor of anchors) if (anchor.key === key) applyMatcher(search, anchor.matcher, at);
}

function applyMatcher(search: Search, matcher: Matcher, at: number): void {
  if (matcher.startsInAnchor && at < search.from) return;
  const verdict = matcher.match(search.text, at);
  if (verdict === undefined) return;
  if ("undecidedFrom" in verdict) {
    if (verdict.undecidedFrom >= search.from) search.decided = Math.min(search.decided, verdict.undecidedFrom);
  } else if (verdict.mark === undefined) {
    search.markEnd = verdict.end;
  } else if (verdict.start >= search.from) {
    search.spans.push(verdict);
    search.aheadSpans.push(verdict);
  }
}

/** Updates the end of the text that is covered by secrets starting before `at`. */
function updateCoveredEnd(search: Search, at: number): void {
  if (search.aheadSpans.length === 0) return;
  search.aheadSpans = search.aheadSpans.filter((span) => {
    if (span.start < at) search.text.coveredEnd = Math.max(search.text.coveredEnd, span.end);
    return span.start >= at;
  });
}

/** Holds back the last bytes if they may be the start of an anchor. */
function holdBackPrefix(search: Search): void {
  const { bytes } = search.text;
  const prefixes = (search.index.prefixes ??= collectPrefixes(search.index));
  const start = Math.max(bytes.length - 3, search.from, search.markEnd, 0);
  for (let at = start; at < bytes.length && at < search.decided; at++) {
    const [a, b, c] = [bytes[at]!, bytes[at + 1] ?? 0, bytes[at + 2] ?? 0];
    const size = bytes.length - at;
    const key =
      size === 1 ? a + oneByte : size === 2 ? (a | (b << 8)) + twoBytes : (a | (b << 8) | (c << 16)) + threeBytes;
    if (prefixes.has(key)) search.decided = at;
  }
}

function collectPrefixes({ byHash }: Index): Set<number> {
  const prefixes = new Set<number>();
  for (const anchors of byHash.values()) {
    for (const { key, matcher } of anchors) {
      if (!matcher.startsInAnchor) continue;
      prefixes
        .add((key & 0xff) + oneByte)
        .add((key & 0xffff) + twoBytes)
        .add((key & 0xffffff) + threeBytes);
    }
  }
  return prefixes;
}

function compareSpans(a: Span, b: Span): number {
  return a.start - b.start || a.rank - b.rank || b.end - a.end;
}

// Added to a prefix, so that prefixes of different lengths differ in one set of small integers.
const oneByte = 0x1_000_000;
const twoBytes = 0x2_000_000;
const threeBytes = 0x3_000_000;
