import type { ByteClass, View } from "./matcher.ts";

/**
 * Reports whether a token can start at `at`. It cannot start in the middle of a word, but the letter before it may end
 * an escape, such as `\n`, `%3D` or the `m` of a terminal color. A token can start directly after another secret too.
 */
export function canStartToken(text: View, at: number, notAfter: ByteClass): boolean {
  const { bytes } = text;
  if (at === 0 || at <= text.coveredEnd) return true;
  const previous = bytes[at - 1]!;
  if (notAfter[previous] === 0) return true;
  const second = bytes[at - 2] ?? 0;
  if (second === backslash) return isEscapeLetter(previous);
  if (previous === letterM) return isDigit(second) || second === semicolon || second === openingBracket;
  return bytes[at - 3] === percentSign && isHexDigit(previous) && isHexDigit(second);
}

function isEscapeLetter(byte: number): boolean {
  return byte === 0x6e || byte === 0x72 || byte === 0x74 || byte === 0x62 || byte === 0x66;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isHexDigit(byte: number): boolean {
  return isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
}

const backslash = 0x5c;
const percentSign = 0x25;
const letterM = 0x6d;
const semicolon = 0x3b;
const openingBracket = 0x5b;
