import type { ClaimedRun, ClaimRuns } from "../model/dispatch-ops.ts";
import { BugError } from "../model/errors.ts";
import type { Invocation } from "../model/executor.ts";
import { PortError } from "../model/port-error.ts";
import type { Order, PollResponse, PollRequest } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { ClaimResult, Waiter, Waiters, Wake } from "./waiters.ts";

export interface PollDeps {
  store: Pick<Store, "apply" | "read">;
  waiters: Waiters;
  leaseMs: number;
  /** How long to hold a poll that does not say how long it may be held. */
  pollHoldMs: number;
  maxPollHoldMs: number;
  getLowDiskReason: () => string | null;
  /** The reasons why runners accepted no runs in their last poll, by runner id. */
  shortages: Map<string, string>;
  signAttempt: (run_id: string, attempt: number) => string;
  /** Decrypts the parameters and prompt of a run. */
  openSealed?: (run_id: string, sealed: string) => ReturnType<Vault["open"]>;
  onError?: (error: unknown) => void;
  /** An upper bound for the store's clock, or null if unknown. */
  storeNow: () => number | null;
  /** Ends all held polls. */
  stopSignal: AbortSignal;
}

/** How long to wait for an acknowledgement before sending the same orders again. */
const resendOrdersMs = 200;

/** How often a poll that waits because of low disk space checks the disk again. */
const diskCheckMs = 3000;

/** A poll whose remaining lease is a smaller fraction renews it at once instead of waiting for the periodic renewal. */
const minLeaseFraction = 0.6;

interface Work {
  claims: ClaimedRun[];
  orders: Order[];
  draining: boolean;
  closed?: true;
}

/**
 * Asks the store for work and orders, and asks again whenever there may be some. Claims are stored before they are returned,
 * so after a lost response, a poll with the same claim_id gets it again. A poll without work and with a known claim_id writes
 * nothing, because there may be thousands of them.
 */
export function createPoll(
  deps: PollDeps,
): (request: PollRequest, signal: AbortSignal, owner?: string) => Promise<PollResponse> {
  const { waiters, stopSignal } = deps;
  const sentOrders = new Map<string, { no: number; at: number }>();
  stopSignal.addEventListener("abort", () => waiters.wakeAll());

  return async function poll({ hold_ms = deps.pollHoldMs, ...request }, caller, owner) {
    const ownedRequest = owner === undefined ? request : { ...request, owner };
    const deadline = performance.now() + Math.min(hold_ms, deps.maxPollHoldMs);
    // Register before querying, so that work which appears after the query wakes this poll.
    const waiter = waiters.add(request.runner_id, request.want);
    const isOver = () => caller.aborted || stopSignal.aborted || waiter.isClosed;
    let unclaimed: Wake[] = [];
    try {
      for (let isRepeat = false; !isOver(); isRepeat = true) {
        const wasWoken = isRepeat && waiter.notified;
        unclaimed = waiter.takeWakes();
        const claimed = waiter.takeClaimed();
        const lowDiskReason = deps.getLowDiskReason();
        const idleWork = wasWoken ? null : await checkForWork(ownedRequest, lowDiskReason, waiter, isRepeat);
        if (isOver()) break;
        if (idleWork === null && claimed === null) unclaimed.push(...waiter.takeWakes());
        const work =
          idleWork ??
          (claimed && toWork(claimed)) ??
          (await claim(
            { ...ownedRequest, ...(lowDiskReason === null ? {} : { pause_reason: lowDiskReason }) },
            waiter,
            isRepeat,
          ));
        waiter.want = work.draining ? 0 : request.want;
        waiter.takesResumed = !work.draining && request.shortage === undefined;
        if (!work.draining) unclaimed = unclaimed.slice(work.claims.length);
        const hasNews = work.claims.length > 0 || shouldSendOrders(request.runner_id, work.orders);
        // The runner may have polled again, because this poll's connection broke or is about to be found broken. The other
        // poll then gets the same runs.
        if (hasNews) waiters.wakeRunner(request.runner_id);
        // A closed poll is a late copy whose response nobody reads, so its wakes are passed on.
        if (hasNews || work.closed || performance.now() >= deadline) return toResponse(request.runner_id, work);
        // The store had nothing for this runner, so these wakes need not be passed on.
        if (!work.draining) unclaimed = [];
        waiter.offer =
          work.draining || work.orders.length > 0 || lowDiskReason !== null ? null : toOp(ownedRequest, true);
        await waitForWake(waiter, { orders: work.orders, wasLow: lowDiskReason !== null, until: deadline }, caller);
        // The waiter was not woken, so there is no work. If some appears now, the next poll with the same claim_id gets it.
        if (!waiter.notified && performance.now() >= deadline)
          return toResponse(request.runner_id, { claims: [], orders: [] });
      }
      return { claims: [], orders: [] };
    } finally {
      waiter.remove(unclaimed);
      // Runs were claimed for this poll, but nobody reads its response. The runner may have polled again already.
      if (waiter.takeClaimed() !== null) waiters.wakeRunner(request.runner_id);
    }
  };

  /** Returns null if a claim is needed: there is work, or the claim_id or the lease has to be written. */
  async function checkForWork(
    request: OwnedRequest,
    lowDiskReason: string | null,
    waiter: Waiter,
    isRepeat: boolean,
  ): Promise<Work | null> {
    const poller = await deps.store.read.poller(
      lowDiskReason === null ? request : { ...request, want: 0, shortage: lowDiskReason },
    );
    if ("conflict" in poller) throw toPortError(poller.conflict);
    waiter.identify(poller);
    if (request.shortage === undefined) deps.shortages.delete(request.runner_id);
    else deps.shortages.set(request.runner_id, request.shortage);
    const storeNow = deps.storeNow();
    const leaseLeft = storeNow === null ? 0 : poller.lease_until - storeNow;
    waiter.leaseEnds = performance.now() + leaseLeft;
    const canWait = poller.idle && (isRepeat || leaseLeft >= minLeaseFraction * deps.leaseMs);
    return canWait ? { claims: [], orders: [], draining: poller.draining } : null;
  }

  async function claim(
    request: OwnedRequest & { pause_reason?: string },
    waiter: Waiter,
    isRepeat: boolean,
  ): Promise<Work> {
    const now = performance.now();
    const [result] = await deps.store.apply([toOp(request, isRepeat)]);
    const work = toWork(result);
    if (!isRepeat) waiter.leaseEnds = now + deps.leaseMs;
    return work;
  }

  function toOp(request: OwnedRequest & { pause_reason?: string }, isRepeat: boolean): ClaimRuns {
    return { op: "claim_runs", ...request, lease_ms: deps.leaseMs, ...(isRepeat ? { is_repeat: true } : {}) };
  }

  /** Waits until woken. During the wait, the dispatcher renews the lease. */
  async function waitForWake(
    waiter: Waiter,
    { orders, wasLow, until }: WaitOptions,
    caller: AbortSignal,
  ): Promise<void> {
    const maxWaitMs = orders.length > 0 ? resendOrdersMs : wasLow ? diskCheckMs : Number.POSITIVE_INFINITY;
    for (;;) {
      await waiter.wait(Math.min(until - performance.now(), maxWaitMs), caller);
      const staysLow = wasLow && orders.length === 0 && deps.getLowDiskReason() !== null;
      if (!staysLow || waiter.notified || caller.aborted || performance.now() >= until) return;
    }
  }

  function shouldSendOrders(runner_id: string, orders: readonly Order[]): boolean {
    const last = orders.at(-1);
    if (last === undefined) return false;
    const previous = sentOrders.get(runner_id);
    return previous === undefined || last.no > previous.no || performance.now() - previous.at >= resendOrdersMs;
  }

  function toResponse(runner_id: string, { claims, orders }: Pick<Work, "claims" | "orders">): PollResponse {
    const last = orders.at(-1);
    if (last === undefined) sentOrders.delete(runner_id);
    else sentOrders.set(runner_id, { no: last.no, at: performance.now() });
    return {
      orders,
      claims: claims.flatMap((claimed) => {
        const invocation = buildInvocation(claimed);
        if (invocation === null) return [];
        const { run_id, attempt, correlation } = claimed;
        return [{ run_id, attempt, invocation, correlation, attempt_token: deps.signAttempt(run_id, attempt) }];
      }),
    };
  }

  /** Adds the decrypted secrets. Returns null if they cannot be decrypted. The run then ends as if its runner had lost it. */
  function buildInvocation({ run_id, invocation, sealed }: ClaimedRun): Invocation | null {
    if (sealed === undefined) return invocation;
    try {
      if (deps.openSealed === undefined)
        throw new BugError("openSealed is missing, so sealed parameters cannot be decrypted");
      return { ...invocation, ...deps.openSealed(run_id, sealed) };
    } catch (error) {
      deps.onError?.(error);
      return null;
    }
  }
}

type OwnedRequest = PollRequest & { owner?: string };

interface WaitOptions {
  /** Orders that were sent before and are not acknowledged. */
  orders: readonly Order[];
  /** The store was not queried because disk space was low. */
  wasLow: boolean;
  until: number;
}

function toWork(result: ClaimResult): Work {
  if (!result.ok) throw toPortError(result.conflict);
  return result;
}

export function toPortError(conflict: "unknown_runner" | "old_epoch" | "duplicate_runner"): PortError {
  const messages = {
    unknown_runner: "This runner is not registered with this coordinator. It must register again.",
    old_epoch: "A newer registration of the same runner has replaced this one.",
    duplicate_runner: "Another live runner has this identity. Stop it, or start this runner with a different name.",
  };
  return new PortError(conflict, messages[conflict]);
}
