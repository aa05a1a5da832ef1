/** Merges objects recursively. Any other value of `over`, lists included, replaces the one in `base`. */
export function mergeKeys(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const merged = Object.entries(over).map(([key, value]): [string, unknown] => {
    const below = Object.hasOwn(base, key) ? base[key] : undefined;
    return [key, isRecord(below) && isRecord(value) ? mergeKeys(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(merged) };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
