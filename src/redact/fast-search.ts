/**
 * Finds candidate positions of anchors in a long text by hashing the four bytes at each position. In JavaScript this
 * takes longer than reading the text from a pipe; in WebAssembly it takes about half as long. The function is only a few
 * instructions, so it is assembled here instead of compiled from another language.
 */
export type FastSearch = (bytes: Uint8Array, found: (at: number) => boolean) => void;

const hashBits = 17;
export const hashCount = 1 << hashBits;
const multiplier = 0x9e3779b1 | 0;
const secondMultiplier = 0x85ebca6b | 0;

export function hashOf(key: number): number {
  return Math.imul(key, multiplier) >>> (32 - hashBits);
}

function secondHashOf(key: number): number {
  return Math.imul(key, secondMultiplier) >>> (32 - hashBits);
}

/** Calls `found` with every position where one of the keys may be, in order, until it returns false. */
export function compileFastSearch(keys: Iterable<number>): FastSearch {
  const { memory, collect } = instantiate();
  for (const key of keys) {
    memory[hashOf(key)] = 1;
    memory[hashCount + secondHashOf(key)] = 1;
  }
  const places = new Int32Array(memory.buffer, placesStart);
  return (bytes, found) => {
    // pieces overlap by three bytes, so that every position is the first of four bytes exactly once
    for (let from = 0; from + 4 <= bytes.length; from += pieceSize) {
      const piece = bytes.subarray(from, from + pieceSize + 3);
      memory.set(piece, textStart);
      const end = piece.length - 3;
      const count = collect(0, end, 0) / 4;
      for (let i = 0; i < count; i++) {
        // the last few may be beyond the piece, in the remains of an earlier one
        if (places[i]! < end && !found(from + places[i]!)) return;
      }
    }
  };
}

const pieceSize = 65_536;
/** How many positions are checked per iteration. */
const placesAtOnce = 8;
// memory layout: the hashes, the second hashes, the piece of text, the positions found in it
const textStart = 2 * hashCount;
const placesStart = textStart + pieceSize + 64;
const pages = Math.ceil((placesStart + 4 * (pieceSize + placesAtOnce)) / 65_536);

interface Instance {
  memory: Uint8Array;
  /** Writes the positions from `at` to `end` where both hashes are known. `out` grows by four for each. */
  collect: (at: number, end: number, out: number) => number;
}

function instantiate(): Instance {
  // Node has WebAssembly, but the type definitions in use do not declare it
  const { WebAssembly: api } = globalThis as unknown as { WebAssembly: WebAssemblyApi };
  const { memory, collect } = new api.Instance(new api.Module(moduleBytes())).exports;
  return { memory: new Uint8Array(memory.buffer), collect };
}

/** The part of WebAssembly that is used, with the exports of the module below. */
interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; collect: Instance["collect"] } };
}

const magic = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function moduleBytes(): Uint8Array {
  const code = functionBody();
  return Uint8Array.from([
    ...magic,
    ...section(1, [1, 0x60, 3, i32, i32, i32, 1, i32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, ...unsigned(pages)]),
    ...section(7, [2, ...text("memory"), 2, 0, ...text("collect"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

function functionBody(): number[] {
  const anyKnown = isKnown(0);
  const collected: number[] = [];
  for (let place = 0; place < placesAtOnce; place++) {
    if (place > 0) anyKnown.push(...isKnown(place), or);
    collected.push(...isKnown(place), ...isKnownTwice(place), and, ifBlock, noValue, ...write(place), endBlock);
  }
  const untilEnd = [getLocal, at, getLocal, end, greaterOrEqual, ifBlock, noValue, getLocal, out, returns, endBlock];
  const step = [getLocal, at, constant, ...signed(placesAtOnce), add, setLocal, at];
  const look = [...anyKnown, ifBlock, noValue, ...collected, endBlock];
  const noLocals = 0;
  return [noLocals, loop, noValue, ...untilEnd, ...look, ...step, branch, 0, endBlock, unreachable, endBlock];
}

function isKnown(place: number): number[] {
  return hashLookup(place, multiplier, 0);
}

function isKnownTwice(place: number): number[] {
  return hashLookup(place, secondMultiplier, hashCount);
}

/** memory[table + ((fourBytesAt(at + place) * factor) >>> shift)] */
function hashLookup(place: number, factor: number, table: number): number[] {
  const fourBytes = [getLocal, at, load32, unaligned, ...unsigned(textStart + place)];
  const hash = [constant, ...signed(factor), multiply, constant, ...signed(32 - hashBits), shiftRight];
  return [...fourBytes, ...hash, load8, unaligned, ...unsigned(table)];
}

/** places[out] = at + place; out += 4 */
function write(place: number): number[] {
  const value = [getLocal, at, constant, ...signed(place), add];
  return [getLocal, out, ...value, store32, unaligned, ...unsigned(placesStart), ...advanceOut];
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

const [at, end, out] = [0, 1, 2];
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
const store32 = 0x36;
const constant = 0x41;
const greaterOrEqual = 0x4f;
const add = 0x6a;
const multiply = 0x6c;
const and = 0x71;
const or = 0x72;
const shiftRight = 0x76;
const advanceOut = [getLocal, out, constant, 4, add, setLocal, out];
