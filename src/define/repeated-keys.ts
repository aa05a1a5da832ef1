import { endOfString } from "../model/exact-numbers.ts";

/** Whether an object of this JSON text has a key twice. `value` is what the text was parsed to: of two keys, it has one. */
export function hasRepeatedKeys(text: string, value: unknown): boolean {
  return keysIn(text) !== keysOf(value);
}

/** Each key is followed by a colon, and outside of strings there is no other. */
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
