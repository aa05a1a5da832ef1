import { findStringEnd } from "../model/exact-numbers.ts";

/** Whether an object in this JSON text repeats a key. `value` is the parsed text, in which each key occurs once. */
export function hasRepeatedKeys(text: string, value: unknown): boolean {
  return countKeysInText(text) !== countKeys(value);
}

/** Counts the colons outside of strings: there is exactly one per key. */
function countKeysInText(text: string): number {
  let keys = 0;
  const signs = /[":]/g;
  for (let match = signs.exec(text); match !== null; match = signs.exec(text)) {
    if (match[0] === ":") keys++;
    else signs.lastIndex = findStringEnd(text, match.index);
  }
  return keys;
}

function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const inner of Object.values(value)) keys += countKeys(inner);
  return keys;
}
