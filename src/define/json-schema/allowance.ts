/** Tracks how much checker time each caller has left, and which callers and schemas were slow recently. */
export interface Allowance {
  /** Seconds until this caller may request another check; 0 means now. */
  secondsToWait(caller: string): number;
  spend(caller: string, ms: number): void;
  /** Records that a check for this caller or schema had to be terminated. */
  noteSlow(name: string): void;
  isSlow(name: string): boolean;
}

/** The allowance refilled per second. */
const refillMs = 100;
const slowForMs = 600_000;
/** Only the most recent names are remembered. Pushing a name out of the list gains an attacker little. */
const maxNames = 1000;

export function createAllowance(fullMs: number, now: () => number = () => performance.now()): Allowance {
  const spent = new Map<string, { ms: number; at: number }>();
  const slow = new Map<string, number>();
  const owed = (caller: string): number => {
    const known = spent.get(caller);
    return known === undefined ? 0 : Math.max(0, known.ms - ((now() - known.at) / 1000) * refillMs);
  };
  return {
    secondsToWait: (caller) => Math.ceil(Math.max(0, owed(caller) - fullMs) / refillMs),
    spend: (caller, ms) => remember(spent, caller, { ms: owed(caller) + ms, at: now() }),
    noteSlow: (name) => remember(slow, name, now() + slowForMs),
    isSlow: (name) => (slow.get(name) ?? 0) > now(),
  };
}

function remember<T>(names: Map<string, T>, name: string, value: T): void {
  names.delete(name);
  names.set(name, value);
  if (names.size > maxNames) names.delete(names.keys().next().value!);
}
