import { notJson } from "./json-refusals.ts";

/** Longer strings are read in pieces of this size, one per turn. */
const pieceBytes = 1024 * 1024;
/** For shorter strings, checking byte by byte is faster than calling JSON.parse. */
const shortBytes = 64;
/** Escaped quotes that are skipped in one turn. */
const quotesInTurn = 5000;

/** Returns the position after the closing quote of the string whose opening quote is at `start`. */
export function* endOfString(bytes: Buffer, start: number): Generator<undefined, number> {
  for (let quotes = 1, from = start + 1; ; quotes += 1) {
    const quote = bytes.indexOf(0x22, from);
    if (quote < 0) throw notJson(bytes, bytes.length);
    if ((quote - startOfBackslashes(bytes, quote, from)) % 2 === 0) return quote + 1;
    from = quote + 1;
    if (quotes % quotesInTurn === 0) yield;
  }
}

/** Decodes the string from its opening quote at `start` to its closing quote before `end`. */
export function* readString(bytes: Buffer, start: number, end: number): Generator<undefined, string> {
  if (end - start < shortBytes && isPlain(bytes, start + 1, end - 1))
    return bytes.toString("latin1", start + 1, end - 1);
  if (end - start <= pieceBytes) return decodePiece(bytes, start + 1, end - 1);
  let text = "";
  for (let from = start + 1; from < end - 1;) {
    const to = from + pieceBytes >= end - 1 ? end - 1 : findCut(bytes, from, from + pieceBytes);
    text += decodePiece(bytes, from, to);
    from = to;
    yield;
  }
  return text;
}

function decodePiece(bytes: Buffer, from: number, to: number): string {
  try {
    // A quoted text parses to a string.
    return JSON.parse(`"${bytes.toString("utf8", from, to)}"`) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw notJson(bytes, from);
  }
}

/** ASCII, without control characters and escapes. */
function isPlain(bytes: Buffer, from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    const byte = bytes[index]!;
    if (byte < 0x20 || byte >= 0x80 || byte === 0x5c) return false;
  }
  return true;
}

/** Returns a position at or shortly before `near` that is not inside a character or an escape. */
function findCut(bytes: Buffer, from: number, near: number): number {
  let cut = near;
  while ((bytes[cut]! & 0xc0) === 0x80) cut -= 1;
  // The longest escape has six characters.
  for (let index = cut - 1; index >= from && index >= cut - 5; index -= 1) {
    if (bytes[index] !== 0x5c) continue;
    const isEscape = (index + 1 - startOfBackslashes(bytes, index + 1, from)) % 2 === 1;
    return isEscape ? index : cut;
  }
  return cut;
}

/** Returns the start of the run of backslashes that ends at `end`. */
function startOfBackslashes(bytes: Buffer, end: number, from: number): number {
  let index = end;
  while (index > from && bytes[index - 1] === 0x5c) index -= 1;
  return index;
}
