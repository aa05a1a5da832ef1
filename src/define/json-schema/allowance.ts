/** Tracks the remaining checker time of each caller, and which callers and schemas were slow recently. */
export interface Allowance {
  /** Seconds until this caller may request another check; 0 means now. */
  secondsToWait(caller: string): number;
  spend(caller: string, ms: number): void;
  /** Records that a check for this caller or schema had to be terminated. */
  markSlow(name: string): void;
  isSlow(name: string): boolean;
}

/** How much of a caller's allowance returns each second. */
const refillMsPerSecond = 100;
const slowPeriodMs = 600_000;
/** Only the most recent names are remembered. An attacker gains little by pushing a name out of the list. */
const maxNames = 1000;

export function createAllowance(allowanceMs: number, now: () => number = () => performance.now()): Allowance {
  const debts = new Map<string, { ms: number; at: number }>();
  const slowUntil = new Map<string, number>();
  const getDebt = (caller: string): number => {
    const debt = debts.get(caller);
    return debt === undefined ? 0 : Math.max(0, debt.ms - ((now() - debt.at) / 1000) * refillMsPerSecond);
  };
  return {
    secondsToWait: (caller) => Math.ceil(Math.max(0, getDebt(caller) - allowanceMs) / refillMsPerSecond),
    spend: (caller, ms) => remember(debts, caller, { ms: getDebt(caller) + ms, at: now() }),
    markSlow: (name) => remember(slowUntil, name, now() + slowPeriodMs),
    isSlow: (name) => (slowUntil.get(name) ?? 0) > now(),
  };
}

function remember<T>(names: Map<string, T>, name: string, value: T): void {
  names.delete(name);
  names.set(name, value);
  if (names.size > maxNames) names.delete(names.keys().next().value!);
}
