/**
 * One encoding of a value, as a sequence of units. Each unit has a few spellings. No spelling of a unit is a
 * prefix of another spelling of the same unit, so matching needs no backtracking.
 */
export interface Needle {
  length: number;
  /** The spellings of a unit, as Latin-1 strings. */
  getSpellings(at: number): readonly string[];
  /** Whether line ends may occur between units, because `base64` and `xxd` wrap lines. */
  wraps: boolean;
  /** The first four bytes in all spellings, if they are easy to list. */
  prefixes?: string[];
  /** The bits of the last byte that reach into one more base64 character. Its value must start with them. */
  overflow?: { bits: number; value: number };
}

/**
 * Returns the value's encodings. Their units are computed on demand, because most are never compared beyond the first
 * bytes.
 */
export function createNeedles(value: string): Needle[] {
  const bytes = Buffer.from(value, "utf8");
  const points = Array.from(value);
  const needles: Needle[] = [
    { length: bytes.length, getSpellings: (at) => [String.fromCharCode(bytes[at]!)], wraps: false },
    { length: points.length, getSpellings: (at) => listJsonSpellings(points[at]!), wraps: false },
    { length: bytes.length, getSpellings: (at) => listUrlSpellings(bytes[at]!), wraps: false },
    { length: bytes.length * 2, getSpellings: (at) => listHexSpellings(bytes, at), wraps: true },
  ];
  if (/^[A-Za-z0-9]{4}/.test(value)) {
    const start = value.slice(0, 4);
    needles[0]!.prefixes = [start];
    needles[1]!.prefixes = [start, "\\u00"];
    const [lower, upper] = listUrlSpellings(bytes[0]!);
    needles[2]!.prefixes = [start, `${lower}%`, `${upper}%`];
  }
  if (points.some(mustEscape)) {
    needles.push({ length: points.length, getSpellings: (at) => listNestedJsonSpellings(points[at]!), wraps: false });
  }
  for (let skipped = 0; skipped < 3; skipped++) {
    const needle = createBase64Needle(bytes, skipped);
    if (needle.length >= minBase64Length) needles.push(needle);
  }
  return needles;
}

/** Shorter needles would match base64 of other data too. */
const minBase64Length = 6;

function listJsonSpellings(point: string): string[] {
  const escaped = [escapeAsUnicode(point), escapeAsUnicode(point, true)];
  const short = shortEscapes[point];
  if (short !== undefined) escaped.push(short);
  if (!mustEscape(point)) escaped.push(point < "\x80" ? point : Buffer.from(point, "utf8").toString("latin1"));
  return escaped;
}

/** JSON that is a string inside JSON. */
function listNestedJsonSpellings(point: string): string[] {
  return listJsonSpellings(point).map((spelling) => spelling.replace(/["\\]/g, "\\$&"));
}

function mustEscape(point: string): boolean {
  return point < " " || point === '"' || point === "\\";
}

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

function escapeAsUnicode(point: string, capitals = false): string {
  let spelling = "";
  for (let i = 0; i < point.length; i++) {
    const digits = point.charCodeAt(i).toString(16).padStart(4, "0");
    spelling += `\\u${capitals ? digits.toUpperCase() : digits}`;
  }
  return spelling;
}

function listUrlSpellings(byte: number): string[] {
  const lower = `%${byte.toString(16).padStart(2, "0")}`;
  const spellings = [lower, lower.toUpperCase()];
  if (byte === 0x20) spellings.push("+");
  if (byte !== 0x25) spellings.push(String.fromCharCode(byte));
  return spellings;
}

function listHexSpellings(bytes: Buffer, at: number): string[] {
  const digit = at % 2 === 0 ? bytes[at >> 1]! >> 4 : bytes[at >> 1]! & 15;
  const spelling = digit.toString(16);
  return digit > 9 ? [spelling, spelling.toUpperCase()] : [spelling];
}

/**
 * The base64 digits of the bytes, if `skipped` other bytes come before them. Omits digits that depend on other bytes.
 */
function createBase64Needle(bytes: Buffer, skipped: number): Needle {
  const first = Math.ceil((skipped * 8) / 6);
  const bits = (skipped + bytes.length) * 8;
  const digit = (at: number): number => {
    const bit = (first + at) * 6 - skipped * 8;
    const twoBytes = (bytes[bit >> 3]! << 8) | (bytes[(bit >> 3) + 1] ?? 0);
    return (twoBytes >> (10 - (bit & 7))) & 63;
  };
  const length = Math.floor(bits / 6) - first;
  const needle: Needle = { length, getSpellings: (at) => listBase64Spellings(base64Digits[digit(at)]!), wraps: true };
  if (bits % 6 > 0) needle.overflow = { bits: bits % 6, value: digit(length) >> (6 - (bits % 6)) };
  return needle;
}

function listBase64Spellings(digit: string): string[] {
  if (digit === "+") return ["+", "-", "%2B", "%2b"];
  if (digit === "/") return ["/", "_", "%2F", "%2f", "\\/"];
  return [digit];
}

/** Returns -1 if the code is not a base64 or base64url digit. */
export function toBase64Value(code: number): number {
  const digit = base64Digits.indexOf(String.fromCharCode(code));
  return digit < 64 ? digit : digit - 2;
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";
