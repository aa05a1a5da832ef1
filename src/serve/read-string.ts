import { notJson } from "./json-refusals.ts";

/** Of a longer string a turn reads so much. */
const pieceBytes = 1024 * 1024;
/** A shorter one is looked at byte by byte, which is quicker than to call for help. */
const shortBytes = 64;
/** Quotes in a string that are looked at in one turn. */
const quotesInTurn = 5000;

/** The place after the quote that ends the string which begins at `start` with a quote. */
export function* endOfString(bytes: Buffer, start: number): Generator<undefined, number> {
  for (let quotes = 1, from = start + 1; ; quotes += 1) {
    const quote = bytes.indexOf(0x22, from);
    if (quote < 0) throw notJson(bytes, bytes.length);
    if ((quote - startOfBackslashes(bytes, quote, from)) % 2 === 0) return quote + 1;
    from = quote + 1;
    if (quotes % quotesInTurn === 0) yield;
  }
}

/** The string between these places, which are its quotes' outer sides. */
export function* readString(bytes: Buffer, start: number, end: number): Generator<undefined, string> {
  if (end - start < shortBytes && isPlain(bytes, start + 1, end - 1))
    return bytes.toString("latin1", start + 1, end - 1);
  if (end - start <= pieceBytes) return unquoted(bytes, start + 1, end - 1);
  let text = "";
  for (let from = start + 1; from < end - 1;) {
    const to = from + pieceBytes >= end - 1 ? end - 1 : lastCut(bytes, from, from + pieceBytes);
    text += unquoted(bytes, from, to);
    from = to;
    yield;
  }
  return text;
}

function unquoted(bytes: Buffer, from: number, to: number): string {
  try {
    // a text between quotes is a string
    return JSON.parse(`"${bytes.toString("utf8", from, to)}"`) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw notJson(bytes, from);
  }
}

/** ASCII, without control characters and escapes. */
function isPlain(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at]!;
    if (byte < 0x20 || byte >= 0x80 || byte === 0x5c) return false;
  }
  return true;
}

/** A place at or shortly before `near` that is neither inside a character nor inside an escape. */
function lastCut(bytes: Buffer, from: number, near: number): number {
  let cut = near;
  while ((bytes[cut]! & 0xc0) === 0x80) cut -= 1;
  // the longest escape has six characters
  for (let at = cut - 1; at >= from && at >= cut - 5; at -= 1) {
    if (bytes[at] !== 0x5c) continue;
    const isEscape = (at + 1 - startOfBackslashes(bytes, at + 1, from)) % 2 === 1;
    return isEscape ? at : cut;
  }
  return cut;
}

/** Where the backslashes begin that stand right before `end`. */
function startOfBackslashes(bytes: Buffer, end: number, from: number): number {
  let at = end;
  while (at > from && bytes[at - 1] === 0x5c) at -= 1;
  return at;
}
