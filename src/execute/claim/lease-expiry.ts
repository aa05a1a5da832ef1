import type { PortFailure } from "../port/port-failure.ts";

export interface LeaseState {
  /** Time since the last answered report was sent, or since a later one found the coordinator down. */
  silentMs: number;
  /** How long the current report has been waiting for its answer; 0 if none is in flight. */
  reportingMs: number;
  lastFailure: PortFailure | null;
}

/**
 * Whether the coordinator may have expired this runner's lease. If so, another runner may get its runs, and they must
 * stop here.
 *
 * The lease cannot expire while the coordinator is down, and a coordinator that comes back waits one full lease before
 * it expires any. A runner that was suspended gives its next report a moment to be answered first.
 */
export function hasLeaseExpired({ silentMs, reportingMs, lastFailure }: LeaseState, leaseMs: number): boolean {
  if (silentMs <= leaseMs || lastFailure === "down") return false;
  const isUnanswered = lastFailure !== null || reportingMs > Math.min(1000, leaseMs / 4);
  return isUnanswered;
}
