import { redactionMarkStart } from "../model/redaction-mark.ts";
import { markOf } from "./matcher.ts";
import { isLikelySecret, sensitiveWord } from "./secret-heuristics.ts";

/** Redacts a text at once, or a long one piece by piece. */
export interface RedactText {
  text(text: string): string;
  inPieces(text: string): Generator<undefined, string>;
}

/**
 * Redacts the strings of plain data, including keys, values of sensitive keys, and values of sensitive flags in a list
 * of arguments. Returns the same object if nothing changed. Yields after each piece of work, so that it does not block
 * the event loop.
 */
export function redactValue(value: unknown, by: RedactText): Generator<undefined, unknown> {
  return walk(value, { by, parents: [], left: pieceWork });
}

interface Walk {
  by: RedactText;
  parents: object[];
  /** The work left in this piece. */
  left: number;
}

const maxDepth = 256;
/** In characters; takes a millisecond or two. */
const pieceWork = 64 * 1024;
/** The cost of a member, in addition to its characters. */
const memberWork = 20;

function* walk(value: unknown, context: Walk): Generator<undefined, unknown> {
  if (typeof value === "string") return yield* redacted(value, context);
  if (typeof value !== "object" || value === null) return value;
  // data that cannot be read to its end is not passed on
  if (context.parents.includes(value)) return markOf("circular");
  if (context.parents.length >= maxDepth) return markOf("too-deep");
  context.parents.push(value);
  const result = Array.isArray(value)
    ? yield* walkList(value, context)
    : isPlain(value)
      ? yield* walkRecord(value, context)
      : value;
  context.parents.pop();
  return result;
}

function* redacted(text: string, context: Walk): Generator<undefined, string> {
  if (text.length > pieceWork) return yield* context.by.inPieces(text);
  context.left -= text.length;
  return context.by.text(text);
}

function* walkList(list: readonly unknown[], context: Walk): Generator<undefined, unknown> {
  let changed = false;
  const results: unknown[] = [];
  for (const [at, item] of list.entries()) {
    if ((context.left -= memberWork) <= 0) yield* nextPiece(context);
    const before = list[at - 1];
    const flag =
      typeof before === "string" && /^--?[A-Za-z][\w.-]*$/.test(before) ? before.replace(/^-+/, "") : undefined;
    const result = isText(item) || isBranch(item) ? yield* walkNamed(flag, item, context) : item;
    changed ||= result !== item;
    results.push(result);
  }
  return changed ? results : list;
}

function* walkRecord(record: object, context: Walk): Generator<undefined, unknown> {
  let changed = false;
  const results = new Map<string, unknown>();
  for (const [key, item] of Object.entries(record)) {
    if ((context.left -= memberWork) <= 0) yield* nextPiece(context);
    const result = isText(item) || isBranch(item) ? yield* walkNamed(key, item, context) : item;
    const newKey = unusedKey(yield* redacted(key, context), results);
    changed ||= result !== item || newKey !== key;
    results.set(newKey, result);
  }
  // not by assignment, because a key may be __proto__
  return changed ? Object.fromEntries(results) : record;
}

function* nextPiece(context: Walk): Generator<undefined, void> {
  context.left = pieceWork;
  yield;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isBranch(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Two keys may become the same mark. */
function unusedKey(key: string, used: ReadonlyMap<string, unknown>): string {
  let candidate = key;
  for (let count = 2; used.has(candidate); count++) candidate = `${key}#${count}`;
  return candidate;
}

function* walkNamed(name: string | undefined, item: unknown, context: Walk): Generator<undefined, unknown> {
  const result = yield* walk(item, context);
  if (name === undefined || typeof item !== "string" || result !== item) return result;
  const word = sensitiveWord(name);
  if (word === undefined || !isLikelySecret(item) || /\s/.test(item) || item.startsWith(redactionMarkStart))
    return item;
  return markOf(word);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
