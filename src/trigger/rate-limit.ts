/** A token bucket per name: `burst` calls at once, refilled at `perMinute`. */
export function createRateLimit({ burst, perMinute }: { burst: number; perMinute: number }, clock: () => number) {
  const buckets = new Map<string, { left: number; at: number }>();
  const perMs = perMinute / 60_000;

  /** Returns 0 if the call is allowed, else the milliseconds to wait. */
  return function take(name: string): number {
    const now = clock();
    const { left, at } = buckets.get(name) ?? { left: burst, at: now };
    const filled = Math.min(burst, left + Math.max(0, now - at) * perMs);
    if (filled < 1) return Math.ceil((1 - filled) / perMs);
    buckets.set(name, { left: filled - 1, at: now });
    return 0;
  };
}
