/**
 * The forms one value takes in text, as needles: sequences of units, each written in one of a few ways.
 * No way of writing a unit begins another way of the same unit, so matching never has to go back.
 */
export interface Needle {
  length: number;
  /** Latin-1 strings. */
  unit(at: number): readonly string[];
  /** Line ends may stand between units: `base64` and `xxd` break lines. */
  wraps: boolean;
  /** Bits of the last byte that spill into one more base64 character: its value must start with them. */
  spill?: { bits: number; value: number };
}

export function needlesOf(value: string): Needle[] {
  const points = Array.from(value);
  const bytes = Buffer.from(value, "utf8");
  const needles = [rawNeedle(bytes), listNeedle(points, jsonUnit), urlNeedle(bytes), hexNeedle(bytes)];
  if (/["\\\p{Cc}]/u.test(value)) needles.push(listNeedle(points, nestedJsonUnit));
  for (const skipped of [0, 1, 2]) {
    const needle = base64Needle(bytes, skipped);
    if (needle.length >= shortestBase64) needles.push(needle);
  }
  return needles;
}

/** Below this, base64 of something else would be taken for it. */
const shortestBase64 = 6;

function rawNeedle(bytes: Buffer): Needle {
  return { length: bytes.length, unit: (at) => [String.fromCharCode(bytes[at]!)], wraps: false };
}

function listNeedle(points: readonly string[], unit: (point: string) => string[]): Needle {
  return { length: points.length, unit: (at) => unit(points[at]!), wraps: false };
}

function jsonUnit(point: string): string[] {
  const lower = unicodeEscape(point);
  const escaped = [lower, lower.replace(/[a-f]/g, upperCase)];
  const short = shortEscapes[point];
  if (short !== undefined) escaped.push(short);
  if (!mustEscape.test(point)) escaped.push(Buffer.from(point, "utf8").toString("latin1"));
  return escaped;
}

/** JSON as a string inside JSON. */
function nestedJsonUnit(point: string): string[] {
  return jsonUnit(point).map((written) => written.replace(/["\\]/g, "\\$&"));
}

const mustEscape = /["\\\p{Cc}]/u;
const shortEscapes: Record<string, string> = {
  '"': '\\"',
  "\\": "\\\\",
  "/": "\\/",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\b": "\\b",
  "\f": "\\f",
};

function unicodeEscape(point: string): string {
  let written = "";
  for (let i = 0; i < point.length; i++) written += `\\u${point.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return written;
}

function urlNeedle(bytes: Buffer): Needle {
  return { length: bytes.length, unit: (at) => urlUnit(bytes[at]!), wraps: false };
}

function urlUnit(byte: number): string[] {
  const lower = `%${byte.toString(16).padStart(2, "0")}`;
  const written = [lower, lower.toUpperCase()];
  if (byte === 0x20) written.push("+");
  if (byte !== 0x25) written.push(String.fromCharCode(byte));
  return written;
}

function hexNeedle(bytes: Buffer): Needle {
  const digits = bytes.toString("hex");
  return { length: digits.length, unit: (at) => bothCases(digits[at]!), wraps: true };
}

function bothCases(digit: string): string[] {
  return digit >= "a" ? [digit, digit.toUpperCase()] : [digit];
}

/** Base64 of the bytes behind `skipped` others, as far as these bytes alone decide it. */
function base64Needle(bytes: Buffer, skipped: number): Needle {
  const padded = Buffer.concat([Buffer.alloc(skipped), bytes]);
  const first = Math.ceil((skipped * 8) / 6);
  const whole = Math.floor((padded.length * 8) / 6);
  const written = padded.toString("base64");
  const digits = written.slice(first, whole);
  const needle: Needle = { length: digits.length, unit: (at) => base64Unit(digits[at]!), wraps: true };
  const bits = (padded.length * 8) % 6;
  if (bits > 0) needle.spill = { bits, value: base64Value(written.charCodeAt(whole)) >> (6 - bits) };
  return needle;
}

function base64Unit(digit: string): string[] {
  if (digit === "+") return ["+", "-", "%2B", "%2b"];
  if (digit === "/") return ["/", "_", "%2F", "%2f", "\\/"];
  return [digit];
}

/** -1 for what is no digit of base64 or base64url. */
export function base64Value(code: number): number {
  const digit = base64Digits.indexOf(String.fromCharCode(code));
  return digit < 64 ? digit : digit - 2;
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

function upperCase(letters: string): string {
  return letters.toUpperCase();
}
