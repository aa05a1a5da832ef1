import type { CreateRun, OpResult, Store } from "../model/store.ts";
import type { ClaimResult, Reservation, Waiters } from "./waiters.ts";

/** Stores a submitted run. If a held poll can take it, it is claimed for that poll in the same transaction. */
export type CreateAndHandOver = (create: CreateRun) => Promise<OpResult>;

interface HandOverOptions {
  store: Pick<Store, "apply">;
  waiters: Pick<Waiters, "reserve">;
  getLowDiskReason: () => string | null;
  /** Runs that are submitted in quicker succession are claimed several at a time, which costs less. */
  burstMs?: number;
}

export function createHandOver({ store, waiters, getLowDiskReason, burstMs = 10 }: HandOverOptions): CreateAndHandOver {
  let lastCreatedAt = Number.NEGATIVE_INFINITY;

  return async function createRun(create) {
    const reservation = reserveWaiter(create);
    if (reservation === null) return (await store.apply([create]))[0];
    let claimed: ClaimResult | null = null;
    try {
      const results = await store.apply([create, reservation.claim]);
      claimed = results[1];
      return results[0];
    } finally {
      reservation.settle(claimed);
    }
  };

  function reserveWaiter({ run }: CreateRun): Reservation | null {
    const now = performance.now();
    const isBurst = now - lastCreatedAt < burstMs;
    lastCreatedAt = now;
    // Which runner may continue a session is decided only when the run is stored.
    return isBurst || run.mode !== "start" || getLowDiskReason() !== null ? null : waiters.reserve(run.demands);
  }
}
