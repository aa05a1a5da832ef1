/**
 * Where in a long text may an anchor stand? For each place, four bytes are hashed and looked up. In
 * JavaScript this costs about as much as reading the text from a pipe; as WebAssembly, half of that. The
 * function is a few instructions, so it is written out here instead of being compiled from another language.
 */
export type FastSearch = (bytes: Uint8Array, found: (at: number) => boolean) => void;

/** How many places are looked at together: an answer means one of that many. */
export const placesAtOnce = 8;

const hashBits = 17;
export const hashCount = 1 << hashBits;
const multiplier = 0x9e3779b1 | 0;

export function hashOf(key: number): number {
  return Math.imul(key, multiplier) >>> (32 - hashBits);
}

/** `found` is asked with every place where one may stand, until it returns false. */
export function compileFastSearch(hashes: Uint8Array): FastSearch {
  const { memory, next } = instantiate();
  memory.set(hashes, 0);
  return (bytes, found) => {
    // Pieces overlap by three bytes, so that every place is the first of four once.
    for (let from = 0; from + 4 <= bytes.length; from += pieceSize) {
      const piece = bytes.subarray(from, from + pieceSize + 3);
      memory.set(piece, hashCount);
      memory.fill(0, hashCount + piece.length, hashCount + piece.length + placesAtOnce + 3);
      const places = piece.length - 3;
      for (let at = next(0, places); at < places; at = next(at + placesAtOnce, places)) {
        if (!found(from + at)) return;
      }
    }
  };
}

const pieceSize = 65_536;

interface Instance {
  memory: Uint8Array;
  /** The first place from `at` on, in steps of `placesAtOnce`, where a hash is known; `end` or more for none. */
  next: (at: number, end: number) => number;
}

function instantiate(): Instance {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes()));
  // The module below exports exactly these two.
  const { memory, next } = exports as { memory: WebAssembly.Memory; next: Instance["next"] };
  return { memory: new Uint8Array(memory.buffer), next };
}

/** Memory: first the hashes, then the piece of text. */
function moduleBytes(): Uint8Array<ArrayBuffer> {
  const pages = Math.ceil((hashCount + pieceSize + 64) / 65_536);
  const code = functionBody();
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, [1, 0x60, 2, i32, i32, 1, i32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, ...unsigned(pages)]),
    ...section(7, [2, ...text("memory"), 2, 0, ...text("next"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

function functionBody(): number[] {
  const lookups = hashLookup(0);
  for (let place = 1; place < placesAtOnce; place++) lookups.push(...hashLookup(place), or);
  const whileAtBelowEnd = [
    getLocal,
    at,
    getLocal,
    end,
    greaterOrEqual,
    ifBlock,
    noValue,
    getLocal,
    end,
    returns,
    endBlock,
  ];
  const ifAnyReturnAt = [...lookups, ifBlock, noValue, getLocal, at, returns, endBlock];
  const step = [getLocal, at, constant, ...signed(placesAtOnce), add, setLocal, at];
  const noLocals = 0;
  return [
    noLocals,
    loop,
    noValue,
    ...whileAtBelowEnd,
    ...ifAnyReturnAt,
    ...step,
    branch,
    0,
    endBlock,
    unreachable,
    endBlock,
  ];
}

/** hashes[(fourBytesAt(at + place) * multiplier) >>> shift] */
function hashLookup(place: number): number[] {
  const fourBytes = [getLocal, at, load32, unaligned, ...unsigned(hashCount + place)];
  const hash = [constant, ...signed(multiplier), multiply, constant, ...signed(32 - hashBits), shiftRight];
  return [...fourBytes, ...hash, load8, unaligned, 0];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function text(name: string): number[] {
  return [name.length, ...Buffer.from(name, "latin1")];
}

function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

function signed(value: number): number[] {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}

const [at, end] = [0, 1];
const i32 = 0x7f;
const noValue = 0x40;
const unaligned = 0;
const unreachable = 0x00;
const loop = 0x03;
const ifBlock = 0x04;
const endBlock = 0x0b;
const branch = 0x0c;
const returns = 0x0f;
const getLocal = 0x20;
const setLocal = 0x21;
const load32 = 0x28;
const load8 = 0x2d;
const constant = 0x41;
const greaterOrEqual = 0x4f;
const add = 0x6a;
const multiply = 0x6c;
const or = 0x72;
const shiftRight = 0x76;
