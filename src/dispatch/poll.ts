import type { ClaimedRun } from "../model/dispatch-ops.ts";
import { BugError } from "../model/errors.ts";
import type { Invocation } from "../model/executor.ts";
import { PortError } from "../model/port-error.ts";
import type { Order, PollAnswer, PollRequest } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { Waiter, Waiters, Wake } from "./waiters.ts";

export interface PollDeps {
  store: Pick<Store, "apply" | "read">;
  waiters: Waiters;
  leaseMs: number;
  pollHoldMs: number;
  lowDisk: () => string | null;
  /** Why runners accepted no runs in their last poll, by runner id. */
  shortages: Map<string, string>;
  signAttempt: (run_id: string, attempt: number) => string;
  /** Decrypts the parameters and prompt of a run. */
  openSealed?: (run_id: string, sealed: string) => ReturnType<Vault["open"]>;
  onFault?: (fault: unknown) => void;
  /** An upper bound for the store's clock, or null if unknown. */
  storeNow: () => number | null;
  /** Ends all held polls. */
  stopped: AbortSignal;
}

/** How long after sending orders the same unacknowledged orders are not sent again. */
const orderAgainMs = 200;

const lookAtDiskMs = 3000;

/** A poll with less of its lease left renews it at once instead of waiting for the periodic renewal. */
const enoughLease = 0.6;

interface Given {
  claims: ClaimedRun[];
  orders: Order[];
  draining: boolean;
}

/**
 * Asks the store for work and orders, and again whenever there may be some. Claims are stored before they are returned,
 * so a lost answer can be repeated under the same claim_id. A poll without work and with a known claim_id writes
 * nothing, because there may be thousands of them.
 */
export function createPoll(
  deps: PollDeps,
): (request: PollRequest, signal: AbortSignal, owner?: string) => Promise<PollAnswer> {
  const { waiters, stopped } = deps;
  const delivered = new Map<string, { no: number; at: number }>();
  stopped.addEventListener("abort", () => waiters.wakeAll());

  return async function poll(request, caller, owner) {
    const asked = owner === undefined ? request : { ...request, owner };
    const isOver = () => caller.aborted || stopped.aborted;
    const until = performance.now() + deps.pollHoldMs;
    // Register before querying, so that work which appears after the query wakes this poll.
    const waiter = waiters.add(request.runner_id, request.want);
    let unserved: Wake[] = [];
    try {
      for (let again = false; !isOver(); again = true) {
        const woken = again && waiter.notified;
        unserved = waiter.takeWakes();
        const hold = deps.lowDisk();
        const idle = woken ? null : await look(asked, hold, waiter, again);
        if (isOver()) break;
        if (idle === null) unserved.push(...waiter.takeWakes());
        const given = idle ?? (await claim({ ...asked, ...(hold === null ? {} : { hold }) }, waiter, again));
        waiter.want = given.draining ? 0 : request.want;
        waiter.takesResumed = !given.draining && request.shortage === undefined;
        if (!given.draining) unserved = unserved.slice(given.claims.length);
        const isDue = given.claims.length > 0 || ordersAreDue(request.runner_id, given.orders);
        // A runner that disconnected may have polled again before this claim was made.
        if (isDue && caller.aborted) waiters.wakeRunner(request.runner_id);
        if (isDue || performance.now() >= until) return answered(request.runner_id, given);
        // The store had nothing for this runner, so these wakes need not be passed on.
        if (!given.draining) unserved = [];
        await pause(waiter, { orders: given.orders, wasLow: hold !== null, until }, caller);
        // Not woken, so there is no work. If there is, the next poll with the same claim_id gets it.
        if (!waiter.notified && performance.now() >= until)
          return answered(request.runner_id, { claims: [], orders: [] });
      }
      return { claims: [], orders: [] };
    } finally {
      waiter.remove(unserved);
    }
  };

  /** Returns null if a claim is needed: there is work, or the claim_id or the lease has to be written. */
  async function look(asked: Asked, hold: string | null, waiter: Waiter, again: boolean): Promise<Given | null> {
    const poller = await deps.store.read.poller(hold === null ? asked : { ...asked, want: 0, shortage: hold });
    if ("conflict" in poller) throw portConflict(poller.conflict);
    waiter.identify(poller);
    if (asked.shortage === undefined) deps.shortages.delete(asked.runner_id);
    else deps.shortages.set(asked.runner_id, asked.shortage);
    const storeNow = deps.storeNow();
    const leaseLeft = storeNow === null ? 0 : poller.lease_until - storeNow;
    waiter.leaseEnds = performance.now() + leaseLeft;
    const mayWait = poller.idle && (again || leaseLeft >= enoughLease * deps.leaseMs);
    return mayWait ? { claims: [], orders: [], draining: poller.draining } : null;
  }

  async function claim(asked: Asked & { hold?: string }, waiter: Waiter, again: boolean): Promise<Given> {
    const now = performance.now();
    const [result] = await deps.store.apply([
      { op: "claim_runs", ...asked, lease_ms: deps.leaseMs, ...(again ? { again } : {}) },
    ]);
    if (!result.ok) throw portConflict(result.conflict);
    if (!again) waiter.leaseEnds = now + deps.leaseMs;
    return result;
  }

  /** Waits until woken. The dispatcher renews the lease meanwhile. */
  async function pause(waiter: Waiter, { orders, wasLow, until }: Pause, caller: AbortSignal): Promise<void> {
    const longestMs = orders.length > 0 ? orderAgainMs : wasLow ? lookAtDiskMs : Number.POSITIVE_INFINITY;
    for (;;) {
      await waiter.wait(Math.min(until - performance.now(), longestMs), caller);
      const staysLow = wasLow && orders.length === 0 && deps.lowDisk() !== null;
      if (!staysLow || waiter.notified || caller.aborted || performance.now() >= until) return;
    }
  }

  function ordersAreDue(runner_id: string, orders: readonly Order[]): boolean {
    const last = orders.at(-1);
    if (last === undefined) return false;
    const before = delivered.get(runner_id);
    return before === undefined || last.no > before.no || performance.now() - before.at >= orderAgainMs;
  }

  function answered(runner_id: string, { claims, orders }: Pick<Given, "claims" | "orders">): PollAnswer {
    const last = orders.at(-1);
    if (last === undefined) delivered.delete(runner_id);
    else delivered.set(runner_id, { no: last.no, at: performance.now() });
    return {
      orders,
      claims: claims.flatMap((claimed) => {
        const invocation = invocationOf(claimed);
        if (invocation === null) return [];
        const { run_id, attempt, correlation } = claimed;
        return [{ run_id, attempt, invocation, correlation, attempt_token: deps.signAttempt(run_id, attempt) }];
      }),
    };
  }

  /** Adds the secrets. Returns null if they cannot be decrypted; the run then ends as if its runner had lost it. */
  function invocationOf({ run_id, invocation, sealed }: ClaimedRun): Invocation | null {
    if (sealed === undefined) return invocation;
    try {
      if (deps.openSealed === undefined) throw new BugError("nothing can open what the record keeps sealed");
      return { ...invocation, ...deps.openSealed(run_id, sealed) };
    } catch (fault) {
      deps.onFault?.(fault);
      return null;
    }
  }
}

type Asked = PollRequest & { owner?: string };

interface Pause {
  /** Orders that were sent before and are not acknowledged. */
  orders: readonly Order[];
  /** The store was not queried because disk space was low. */
  wasLow: boolean;
  until: number;
}

export function portConflict(conflict: "unknown_runner" | "old_epoch" | "duplicate_runner"): PortError {
  const messages = {
    unknown_runner: "This runner is not registered here: it has to register again.",
    old_epoch: "This registration was replaced by a newer one of the same runner.",
    duplicate_runner: "Another live runner has this identity. Stop it, or give this one a name of its own.",
  };
  return new PortError(conflict, messages[conflict]);
}
