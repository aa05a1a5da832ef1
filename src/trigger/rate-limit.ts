/** Creates a token bucket per name: `burst` calls at once, refilled at `perMinute`. */
export function createRateLimit({ burst, perMinute }: { burst: number; perMinute: number }, clock: () => number) {
  const buckets = new Map<string, { tokens: number; at: number }>();
  const perMs = perMinute / 60_000;

  /** Returns 0 if the call is allowed, else the milliseconds to wait. */
  return function take(name: string): number {
    const now = clock();
    const { tokens, at } = buckets.get(name) ?? { tokens: burst, at: now };
    const available = Math.min(burst, tokens + Math.max(0, now - at) * perMs);
    if (available < 1) return Math.ceil((1 - available) / perMs);
    buckets.set(name, { tokens: available - 1, at: now });
    return 0;
  };
}
