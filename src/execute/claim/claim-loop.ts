import type { NewId } from "../../model/ids.ts";
import type { Claim, Order, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff, sleep } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import { portFault, type PortFault } from "../port/port-fault.ts";
import { createWakeup } from "../port/wakeup.ts";

/** Waits for work and orders. Its held poll is what keeps an idle runner alive in the coordinator's eyes. */
export interface ClaimLoop {
  /**
   * The newest claim of this registration that was answered with runs, and so is never asked for again; never the one
   * that is still being asked for, as that may be given runs while a report that names it is on its way.
   */
  readonly asOfClaim: string | null;
  /** A slot became free. */
  slotFreed(): void;
  /** Takes no more claims; orders still come. */
  drain(): void;
  stop(): Promise<void>;
}

export interface ClaimLoopOptions {
  port: RunnerPort;
  identity: Identity;
  freeSlots: () => number;
  /** Why the last call of freeSlots gave fewer than there are; null where it did not. */
  shortage: () => string | null;
  /** Synchronous: a claim is held before the next poll is sent. */
  take: (claim: Claim) => void;
  /** Something was handed to it that it does not take: the next report says so. */
  onDeclined: () => void;
  dispatch: (order: Order) => void;
  newId: NewId;
  /** Before a failed poll is tried again; grows to ten times that. */
  pollPauseMs: number;
  random: () => number;
  onFault: (error: unknown, fault: PortFault) => void;
}

/** A busy runner polls for orders only when no slot became free for this long: short runs need no poll in between. */
const busyPauseMs = 25;

const afterClaimPauseMs = 1;

export function startClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const { port, identity } = options;
  const stopping = new AbortController();
  const backoff = createBackoff({
    firstMs: options.pollPauseMs,
    longestMs: options.pollPauseMs * 10,
    random: options.random,
  });
  const freed = createWakeup();
  let claimId = "";
  let claimsEpoch: number | null = null;
  let asOfClaim: string | null = null;
  let ackOrder = 0;
  let draining = false;
  let current: { want: number; cancel: AbortController } | null = null;

  /** Claims of older registrations are judged by the newest: null is as of that one, and the claims to come are after it. */
  function beginEpoch(epoch: number): void {
    if (epoch === claimsEpoch) return;
    claimsEpoch = epoch;
    claimId = options.newId();
    asOfClaim = null;
  }

  async function pollOnce(): Promise<void> {
    const { runner_id, epoch } = await identity.current();
    beginEpoch(epoch);
    const want = draining ? 0 : Math.max(0, options.freeSlots());
    // then not even a run that somebody wants to go on
    const shortage = draining ? "it drains" : options.shortage();
    const cancel = new AbortController();
    current = { want, cancel };
    const sentAt = performance.now();
    try {
      const answer = await port.poll(
        { runner_id, epoch, claim_id: claimId, want, ...(shortage === null ? {} : { shortage }), ack_order: ackOrder },
        AbortSignal.any([cancel.signal, stopping.signal]),
      );
      // an answer to who we were before registering again may have been taken back since
      const stale = (await identity.current()).epoch !== epoch;
      // what arrives once the runner drains is not listed as held, and so goes back at no cost
      const takes = !stale && !draining && !stopping.signal.aborted;
      if (takes) for (const claim of answer.claims) options.take(claim);
      else if (answer.claims.length > 0) options.onDeclined();
      // one that brought nothing goes on being asked for: then the coordinator has nothing to write down
      if (answer.claims.length > 0 && !stale) {
        asOfClaim = claimId;
        claimId = options.newId();
      }
      for (const order of answer.orders) {
        if (order.no <= ackOrder) continue;
        options.dispatch(order);
        ackOrder = order.no;
      }
      backoff.reset();
      // what was taken begins first, and may be over by then: the next poll asks for more at once
      if (answer.claims.length > 0) await sleep(afterClaimPauseMs, stopping.signal);
      // a port that does not hold a poll open must not be asked in a circle
      if (answer.claims.length + answer.orders.length === 0 && performance.now() - sentAt < 5)
        await sleep(5, stopping.signal);
    } catch (error) {
      // the same claim_id again: had this one been answered, the answer is the same
      if (cancel.signal.aborted || stopping.signal.aborted) return;
      const fault = portFault(error);
      options.onFault(error, fault);
      if (fault === "register") await identity.renew(epoch);
      else await backoff.wait(stopping.signal);
    } finally {
      current = null;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (!draining && options.freeSlots() <= 0) {
        await freed.wait(busyPauseMs, stopping.signal);
        // short runs end in swarms: one poll for several slots
        await sleep(afterClaimPauseMs, stopping.signal);
      }
      if (!stopping.signal.aborted) await pollOnce();
    }
  }
  // the identity rejects only when the runner stops
  const running = run().catch((error: unknown) => {
    if (!stopping.signal.aborted) options.onFault(error, "silent");
  });

  return {
    get asOfClaim() {
      return asOfClaim;
    },
    slotFreed() {
      freed.notify();
      // only a poll that wants nothing is cut short: any other returns with the next run anyway
      if (!draining && current?.want === 0) current.cancel.abort();
    },
    drain() {
      draining = true;
      freed.notify();
      if (current && current.want > 0) current.cancel.abort();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
