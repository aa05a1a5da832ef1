/** A bucket for each name: `burst` at once, refilled with `perMinute`. */
export function createRateLimit({ burst, perMinute }: { burst: number; perMinute: number }, clock: () => number) {
  const buckets = new Map<string, { left: number; at: number }>();
  const perMs = perMinute / 60_000;

  /** How many milliseconds to wait; 0: taken. */
  return function take(name: string): number {
    const now = clock();
    const { left, at } = buckets.get(name) ?? { left: burst, at: now };
    const filled = Math.min(burst, left + Math.max(0, now - at) * perMs);
    if (filled < 1) return Math.ceil((1 - filled) / perMs);
    buckets.set(name, { left: filled - 1, at: now });
    return 0;
  };
}
