import { endOfString } from "../model/exact-numbers.ts";

/** Whether an object in this JSON text repeats a key. `value` is the parsed text, in which each key occurs once. */
export function hasRepeatedKeys(text: string, value: unknown): boolean {
  return keysIn(text) !== keysOf(value);
}

/** Counts the colons outside of strings: there is exactly one per key. */
function keysIn(text: string): number {
  let keys = 0;
  const signs = /[":]/g;
  for (let found = signs.exec(text); found !== null; found = signs.exec(text)) {
    if (found[0] === ":") keys++;
    else signs.lastIndex = endOfString(text, found.index);
  }
  return keys;
}

function keysOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const inner of Object.values(value)) keys += keysOf(inner);
  return keys;
}
