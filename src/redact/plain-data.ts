import { markOf, markStart } from "./matcher.ts";
import { isStrong, tellingWord } from "./strong.ts";

/**
 * Redacts the strings of plain data, keys included, and what stands under a telling key or behind a telling
 * flag in a list of arguments. Returns the same object where nothing changed.
 */
export function redactValue(value: unknown, text: (text: string) => string): unknown {
  return walk(value, { text, parents: [] });
}

interface Walk {
  text: (text: string) => string;
  parents: object[];
}

const deepest = 256;

function walk(value: unknown, context: Walk): unknown {
  if (typeof value === "string") return context.text(value);
  if (typeof value !== "object" || value === null) return value;
  // What cannot be read to its end is not passed on.
  if (context.parents.includes(value)) return markOf("circular");
  if (context.parents.length >= deepest) return markOf("too-deep");
  context.parents.push(value);
  const redacted = Array.isArray(value)
    ? walkList(value, context)
    : isPlain(value)
      ? walkRecord(value, context)
      : value;
  context.parents.pop();
  return redacted;
}

function walkList(list: readonly unknown[], context: Walk): unknown {
  let changed = false;
  const redacted = list.map((item, at) => {
    const before = list[at - 1];
    const flag =
      typeof before === "string" && /^--?[A-Za-z][\w.-]*$/.test(before) ? before.replace(/^-+/, "") : undefined;
    const result = walkNamed(flag, item, context);
    changed ||= result !== item;
    return result;
  });
  return changed ? redacted : list;
}

function walkRecord(record: object, context: Walk): unknown {
  let changed = false;
  const redacted = new Map<string, unknown>();
  for (const [key, item] of Object.entries(record)) {
    const result = walkNamed(key, item, context);
    const newKey = unusedKey(context.text(key), redacted);
    changed ||= result !== item || newKey !== key;
    redacted.set(newKey, result);
  }
  // Not by assignment: a key may be __proto__.
  return changed ? Object.fromEntries(redacted) : record;
}

/** Two keys may become the same mark. */
function unusedKey(key: string, used: ReadonlyMap<string, unknown>): string {
  let candidate = key;
  for (let count = 2; used.has(candidate); count++) candidate = `${key}#${count}`;
  return candidate;
}

function walkNamed(name: string | undefined, item: unknown, context: Walk): unknown {
  const result = walk(item, context);
  if (name === undefined || typeof item !== "string" || result !== item) return result;
  const word = tellingWord(name);
  if (word === undefined || !isStrong(item) || /\s/.test(item) || item.startsWith(markStart)) return item;
  return markOf(word);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
