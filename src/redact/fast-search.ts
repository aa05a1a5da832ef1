/**
 * Finds candidate positions of anchors in long text by hashing the four bytes at each position. In JavaScript this
 * takes longer than reading the text from a pipe; in WebAssembly it takes about half as long. The function is only a
 * few instructions, so it is assembled here, not compiled from another language.
 */
export type FastSearch = (bytes: Uint8Array, onCandidate: (at: number) => boolean) => void;

const hashBits = 17;
export const hashCount = 1 << hashBits;
const multiplier = 0x9e3779b1 | 0;
const secondMultiplier = 0x85ebca6b | 0;

export function hashKey(key: number): number {
  return Math.imul(key, multiplier) >>> (32 - hashBits);
}

function computeSecondHash(key: number): number {
  return Math.imul(key, secondMultiplier) >>> (32 - hashBits);
}

/** The search calls `onCandidate` with each position where one of the keys may be, in order, until it returns false. */
export function compileFastSearch(keys: Iterable<number>): FastSearch {
  const { memory, collect } = instantiate();
  for (const key of keys) {
    memory[hashKey(key)] = 1;
    memory[hashCount + computeSecondHash(key)] = 1;
  }
  const positions = new Int32Array(memory.buffer, positionsStart);
  return (bytes, onCandidate) => {
    // Pieces overlap by three bytes, so that each position is checked exactly once.
    for (let from = 0; from + 4 <= bytes.length; from += pieceSize) {
      const piece = bytes.subarray(from, from + pieceSize + 3);
      memory.set(piece, textStart);
      const end = piece.length - 3;
      const count = collect(0, end, 0) / 4;
      for (let i = 0; i < count; i++) {
        // The last positions may be beyond the piece, in bytes that remain of an earlier piece.
        if (positions[i]! < end && !onCandidate(from + positions[i]!)) return;
      }
    }
  };
}

const pieceSize = 65_536;
/** How many positions are checked per iteration. */
const positionsPerIteration = 8;
// The layout of the memory: the hashes, the second hashes, the piece of text, and the positions found in it.
const textStart = 2 * hashCount;
const positionsStart = textStart + pieceSize + 64;
const pages = Math.ceil((positionsStart + 4 * (pieceSize + positionsPerIteration)) / 65_536);

interface Instance {
  memory: Uint8Array;
  /** Writes the positions from `at` to `end` where both hashes match. `out` grows by four for each position. */
  collect: (at: number, end: number, out: number) => number;
}

function instantiate(): Instance {
  // Node has WebAssembly, but the type definitions in use do not declare it
  const { WebAssembly: api } = globalThis as unknown as { WebAssembly: WebAssemblyApi };
  const { memory, collect } = new api.Instance(new api.Module(assembleModule())).exports;
  return { memory: new Uint8Array(memory.buffer), collect };
}

/** The part of the WebAssembly API that is used here, with the exports of the module below. */
interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: { memory: { buffer: ArrayBuffer }; collect: Instance["collect"] } };
}

const magic = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function assembleModule(): Uint8Array {
  const code = encodeFunction();
  return Uint8Array.from([
    ...magic,
    ...encodeSection(1, [1, 0x60, 3, i32, i32, i32, 1, i32]),
    ...encodeSection(3, [1, 0]),
    ...encodeSection(5, [1, 0, ...encodeUnsigned(pages)]),
    ...encodeSection(7, [2, ...encodeName("memory"), 2, 0, ...encodeName("collect"), 0, 0]),
    ...encodeSection(10, [1, ...encodeUnsigned(code.length), ...code]),
  ]);
}

function encodeFunction(): number[] {
  const anyMatch = encodeFirstHashTest(0);
  const collectMatches: number[] = [];
  for (let offset = 0; offset < positionsPerIteration; offset++) {
    if (offset > 0) anyMatch.push(...encodeFirstHashTest(offset), or);
    collectMatches.push(
      ...encodeFirstHashTest(offset),
      ...encodeSecondHashTest(offset),
      and,
      ifBlock,
      noValue,
      ...encodePositionWrite(offset),
      endBlock,
    );
  }
  const returnAtEnd = [
    getLocal,
    at,
    getLocal,
    end,
    greaterOrEqual,
    ifBlock,
    noValue,
    getLocal,
    out,
    returnInstruction,
    endBlock,
  ];
  const advance = [getLocal, at, constant, ...encodeSigned(positionsPerIteration), add, setLocal, at];
  const checkPositions = [...anyMatch, ifBlock, noValue, ...collectMatches, endBlock];
  const noLocals = 0;
  return [
    noLocals,
    loop,
    noValue,
    ...returnAtEnd,
    ...checkPositions,
    ...advance,
    branch,
    0,
    endBlock,
    unreachable,
    endBlock,
  ];
}

function encodeFirstHashTest(offset: number): number[] {
  return encodeHashLookup(offset, multiplier, 0);
}

function encodeSecondHashTest(offset: number): number[] {
  return encodeHashLookup(offset, secondMultiplier, hashCount);
}

/** memory[table + ((fourBytesAt(at + offset) * factor) >>> shift)] */
function encodeHashLookup(offset: number, factor: number, table: number): number[] {
  const fourBytes = [getLocal, at, load32, unaligned, ...encodeUnsigned(textStart + offset)];
  const hash = [constant, ...encodeSigned(factor), multiply, constant, ...encodeSigned(32 - hashBits), shiftRight];
  return [...fourBytes, ...hash, load8, unaligned, ...encodeUnsigned(table)];
}

/** positions[out] = at + offset; out += 4 */
function encodePositionWrite(offset: number): number[] {
  const value = [getLocal, at, constant, ...encodeSigned(offset), add];
  return [getLocal, out, ...value, store32, unaligned, ...encodeUnsigned(positionsStart), ...advanceOut];
}

function encodeSection(id: number, content: readonly number[]): number[] {
  return [id, ...encodeUnsigned(content.length), ...content];
}

function encodeName(name: string): number[] {
  return [name.length, ...Buffer.from(name, "latin1")];
}

function encodeUnsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encodeUnsigned(value >>> 7)];
}

function encodeSigned(value: number): number[] {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...encodeSigned(value >> 7)];
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
const returnInstruction = 0x0f;
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
