/** Builds a cursor. Cursors are opaque to callers and only valid for the list that returned them. */
export function toCursor(list: string, last: string): string {
  return Buffer.from(`${list}:${last}`).toString("base64url");
}

/** Returns null if this is not a cursor of the list. */
export function fromCursor(list: string, cursor: string): string | null {
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const last = text.slice(list.length + 1);
  const isValid = text.startsWith(`${list}:`) && /^[\w@.:-]{1,1500}$/.test(last) && toCursor(list, last) === cursor;
  return isValid ? last : null;
}
