/** How much of the checker's time each caller has left, and who was slow of late. */
export interface Allowance {
  /** Seconds until this caller may ask for a check again; 0: now. */
  waitOf(caller: string): number;
  spend(caller: string, ms: number): void;
  /** A check of this was given up. */
  noteSlow(name: string): void;
  isSlow(name: string): boolean;
}

/** How much of it is refilled each second. */
const perSecondMs = 100;
const slowForMs = 600_000;
/** Those who were last there are remembered; nobody gains much by making the list forget. */
const mostNames = 1000;

export function createAllowance(fullMs: number, now: () => number = () => performance.now()): Allowance {
  const spent = new Map<string, { ms: number; at: number }>();
  const slow = new Map<string, number>();
  const owed = (caller: string): number => {
    const known = spent.get(caller);
    return known === undefined ? 0 : Math.max(0, known.ms - ((now() - known.at) / 1000) * perSecondMs);
  };
  return {
    waitOf: (caller) => Math.ceil(Math.max(0, owed(caller) - fullMs) / perSecondMs),
    spend: (caller, ms) => remember(spent, caller, { ms: owed(caller) + ms, at: now() }),
    noteSlow: (name) => remember(slow, name, now() + slowForMs),
    isSlow: (name) => (slow.get(name) ?? 0) > now(),
  };
}

function remember<T>(names: Map<string, T>, name: string, value: T): void {
  names.delete(name);
  names.set(name, value);
  if (names.size > mostNames) names.delete(names.keys().next().value!);
}
