import { redactionMarkStart } from "../model/redaction-mark.ts";
import { createMark } from "./matcher.ts";
import { isLikelySecret, findSensitiveWord } from "./secret-heuristics.ts";

/** Redacts text in one step, or long text piece by piece. */
export interface TextRedactor {
  text(text: string): string;
  inPieces(text: string): Generator<undefined, string>;
}

/**
 * Redacts the strings of plain data, including keys, values of sensitive keys, and values of sensitive flags in a list
 * of arguments. Returns the same object if nothing changed. Yields after each piece of work, so that it does not block
 * the event loop.
 */
export function redactValue(value: unknown, redactor: TextRedactor): Generator<undefined, unknown> {
  return walk(value, { redactor, parents: [], remainingWork: pieceWork });
}

interface Walk {
  redactor: TextRedactor;
  parents: object[];
  /** The work that remains in this piece. */
  remainingWork: number;
}

const maxDepth = 256;
/** In characters. One piece takes a millisecond or two. */
const pieceWork = 64 * 1024;
/** The cost of a member, in addition to its characters. */
const memberWork = 20;

/** `name` is the sensitive key of a list, which applies to its items. */
function* walk(value: unknown, context: Walk, name?: string): Generator<undefined, unknown> {
  if (typeof value === "string") return yield* redactText(value, context);
  if (typeof value !== "object" || value === null) return value;
  // Replace data that cannot be read completely.
  if (context.parents.includes(value)) return createMark("circular");
  if (context.parents.length >= maxDepth) return createMark("too-deep");
  context.parents.push(value);
  const result = Array.isArray(value)
    ? yield* walkList(value, context, name)
    : isPlain(value)
      ? yield* walkRecord(value, context)
      : value;
  context.parents.pop();
  return result;
}

function* redactText(text: string, context: Walk): Generator<undefined, string> {
  if (text.length > pieceWork) return yield* context.redactor.inPieces(text);
  context.remainingWork -= text.length;
  return context.redactor.text(text);
}

function* walkList(list: readonly unknown[], context: Walk, name: string | undefined): Generator<undefined, unknown> {
  let isChanged = false;
  const results: unknown[] = [];
  for (const [index, item] of list.entries()) {
    if ((context.remainingWork -= memberWork) <= 0) yield* startNextPiece(context);
    const previous = list[index - 1];
    const flag =
      typeof previous === "string" && /^--?[A-Za-z][\w.-]*$/.test(previous) ? previous.replace(/^-+/, "") : name;
    const result = isText(item) || isBranch(item) ? yield* walkNamed(flag, item, context) : item;
    isChanged ||= result !== item;
    results.push(result);
  }
  return isChanged ? results : list;
}

function* walkRecord(record: object, context: Walk): Generator<undefined, unknown> {
  let isChanged = false;
  const results = new Map<string, unknown>();
  for (const [key, item] of Object.entries(record)) {
    if ((context.remainingWork -= memberWork) <= 0) yield* startNextPiece(context);
    const result = isText(item) || isBranch(item) ? yield* walkNamed(key, item, context) : item;
    const newKey = toUniqueKey(yield* redactText(key, context), results);
    isChanged ||= result !== item || newKey !== key;
    results.set(newKey, result);
  }
  // Object.fromEntries is safe for a key such as __proto__; assignment is not.
  return isChanged ? Object.fromEntries(results) : record;
}

function* startNextPiece(context: Walk): Generator<undefined, void> {
  context.remainingWork = pieceWork;
  yield;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isBranch(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Makes a key unique, because two keys may become the same mark. */
function toUniqueKey(key: string, used: ReadonlyMap<string, unknown>): string {
  let candidate = key;
  for (let count = 2; used.has(candidate); count++) candidate = `${key}#${count}`;
  return candidate;
}

function* walkNamed(name: string | undefined, item: unknown, context: Walk): Generator<undefined, unknown> {
  const listName = name !== undefined && Array.isArray(item) && findSensitiveWord(name) ? name : undefined;
  const result = yield* walk(item, context, listName);
  if (name === undefined || typeof item !== "string" || result !== item) return result;
  const word = findSensitiveWord(name);
  if (word === undefined || !isLikelySecret(item) || /\s/.test(item) || item.startsWith(redactionMarkStart))
    return item;
  return createMark(word);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
