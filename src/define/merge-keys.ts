/** Merges objects recursively. Any other value of `changes`, lists included, replaces the one in `base`. */
export function mergeKeys(base: Record<string, unknown>, changes: Record<string, unknown>): Record<string, unknown> {
  const merged = Object.entries(changes).map(([key, value]): [string, unknown] => {
    const current = Object.hasOwn(base, key) ? base[key] : undefined;
    return [key, isRecord(current) && isRecord(value) ? mergeKeys(current, value) : value];
  });
  return { ...base, ...Object.fromEntries(merged) };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
