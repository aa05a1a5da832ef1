import type { PortFailure } from "../port/port-failure.ts";

export interface LeaseState {
  /** Time since the last answered report was sent, or since a later one found the coordinator down. */
  silentMs: number;
  /** How long the current report has been waiting for its answer; 0 if none is in flight. */
  reportingMs: number;
  lastFailure: PortFailure | null;
}

/**
 * Whether the coordinator has answered no report for longer than this. After a whole lease it may have expired the lease.
 * Another runner may then get this runner's runs, and they must stop here.
 *
 * The lease cannot expire while the coordinator is down, and a coordinator that comes back waits one full lease before
 * it expires any. A runner that was suspended gives its next report a moment to be answered first.
 */
export function isUnansweredFor({ silentMs, reportingMs, lastFailure }: LeaseState, ms: number): boolean {
  if (silentMs <= ms || lastFailure === "down") return false;
  const isUnanswered = lastFailure !== null || reportingMs > Math.min(1000, ms / 4);
  return isUnanswered;
}
