import { isExactNumber } from "../model/exact-numbers.ts";
import { maxJson } from "../model/json-limits.ts";
import type { HeavyTurn } from "./heavy-turns.ts";
import { forbiddenKey, inexactNumber, isForbidden, notJson, tooHeavy } from "./json-refusals.ts";
import { endOfString, readString } from "./read-string.ts";

/** About one millisecond of work. */
const tokensPerTurn = 5000;

/** An object or list that is being read, and the key of its current member. */
type Branch = { list: unknown[]; key: number } | { list: null; object: Record<string, unknown>; key: string };

/**
 * Parses valid UTF-8 like JSON.parse, but in small pieces that let the event loop run. Throws a Refusal for JSON that is too
 * deep or too large, for forbidden keys and for inexact numbers.
 */
export async function parseInTurns(bytes: Buffer, turn: HeavyTurn): Promise<unknown> {
  const work = parse(bytes);
  for (;;) {
    await turn();
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

function* parse(bytes: Buffer): Generator<undefined, unknown> {
  const open: Branch[] = [];
  const names = new Set<string>();
  let position = bytes.length >= 3 && bytes.readUIntBE(0, 3) === byteOrderMark ? 3 : 0;
  let values = 0;
  let root: unknown;
  for (let remainingTokens = tokensPerTurn; ; remainingTokens -= 1) {
    if (remainingTokens === 0) {
      remainingTokens = tokensPerTurn;
      yield;
    }
    position = skipSpace(bytes, position);
    const first = bytes[position];
    if (first === 0x7b || first === 0x5b) {
      if (yield* begin(first === 0x5b)) continue;
    } else store(yield* readScalar(first));
    if (yield* end()) return root;
  }

  /** Opens an object or a list. Returns false if it is empty. */
  function* begin(isList: boolean): Generator<undefined, boolean> {
    const branch: Branch = isList ? { list: [], key: 0 } : { list: null, object: {}, key: "" };
    store(branch.list ?? branch.object);
    open.push(branch);
    if (open.length > maxJson.depth) throw tooHeavy("depth");
    countValue();
    position = skipSpace(bytes, position + 1);
    if (bytes[position] === (isList ? 0x5d : 0x7d)) return false;
    if (branch.list === null) yield* readKey(branch);
    return true;
  }

  /** Reads closing brackets and the comma after a value. Returns true at the end of the input. */
  function* end(): Generator<undefined, boolean> {
    for (;;) {
      position = skipSpace(bytes, position);
      const inner = open.at(-1);
      if (inner === undefined && position < bytes.length) throw notJson(bytes, position);
      if (inner === undefined) return true;
      if (bytes[position] !== (inner.list ? 0x5d : 0x7d)) break;
      open.pop();
      position += 1;
    }
    if (bytes[position] !== 0x2c) throw notJson(bytes, position);
    countValue();
    position = skipSpace(bytes, position + 1);
    const inner = open.at(-1)!;
    if (inner.list) inner.key += 1;
    else yield* readKey(inner);
    return false;
  }

  function* readKey(branch: Branch & { list: null }): Generator<undefined, void> {
    if (bytes[position] !== 0x22) throw notJson(bytes, position);
    branch.key = yield* readText();
    if (isForbidden(branch.key)) throw forbiddenKey(path());
    names.add(branch.key);
    if (names.size > maxJson.names) throw tooHeavy("names");
    position = skipSpace(bytes, position);
    if (bytes[position] !== 0x3a) throw notJson(bytes, position);
    position += 1;
  }

  function* readScalar(first: number | undefined): Generator<undefined, unknown> {
    if (first === 0x22) return yield* readText();
    if (isNumberByte(first)) return readNumber();
    const word = words.find(({ begins }) => begins === first);
    if (word === undefined || bytes.toString("latin1", position, position + word.text.length) !== word.text)
      throw notJson(bytes, position);
    position += word.text.length;
    return word.value;
  }

  function* readText(): Generator<undefined, string> {
    const start = position;
    position = yield* endOfString(bytes, start);
    return yield* readString(bytes, start, position);
  }

  function readNumber(): number {
    const start = position;
    while (isNumberByte(bytes[position])) position += 1;
    const text = bytes.toString("latin1", start, position);
    if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text)) throw notJson(bytes, start);
    if ((text.length > 15 || /e/i.test(text)) && !isExactNumber(text)) throw inexactNumber(path(), text);
    return Number(text);
  }

  function store(value: unknown): void {
    const inner = open.at(-1);
    if (inner === undefined) root = value;
    else if (inner.list) inner.list.push(value);
    else inner.object[inner.key] = value;
  }

  function countValue(): void {
    values += 1;
    if (values > maxJson.values) throw tooHeavy("values");
  }

  function path(): (string | number)[] {
    return open.map(({ key }) => key);
  }
}

const byteOrderMark = 0xefbbbf;
const words = [
  { begins: 0x74, text: "true", value: true },
  { begins: 0x66, text: "false", value: false },
  { begins: 0x6e, text: "null", value: null },
];

function skipSpace(bytes: Buffer, from: number): number {
  let position = from;
  while (bytes[position] === 0x20 || bytes[position] === 0x0a || bytes[position] === 0x0d || bytes[position] === 0x09)
    position += 1;
  return position;
}

/** A digit or one of + - . e E */
function isNumberByte(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (
    (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2e || byte === 0x2b || byte === 0x65 || byte === 0x45
  );
}
