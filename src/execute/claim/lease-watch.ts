import type { PortFault } from "../port/port-fault.ts";

export interface LeaseState {
  /** Since the last answered report was sent, or a later one found nobody there. */
  silentMs: number;
  /** How long the report under way has been unanswered; 0 where there is none. */
  reportingMs: number;
  lastFault: PortFault | null;
}

/**
 * Is the lease over, as far as this runner can tell? Then its runs may be given to another, and must not go
 * on here. Not while nobody listens at the coordinator's address: then nobody judges leases, and a
 * coordinator that comes back judges none before it has listened for a whole one. And not for a runner that was itself
 * asleep, before its next report has had a moment to be answered.
 */
export function isLeaseOver({ silentMs, reportingMs, lastFault }: LeaseState, leaseMs: number): boolean {
  if (silentMs <= leaseMs || lastFault === "down") return false;
  const askedInVain = lastFault !== null || reportingMs > Math.min(1000, leaseMs / 4);
  return askedInVain;
}
