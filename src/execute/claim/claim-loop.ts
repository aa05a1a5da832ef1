import type { NewId } from "../../model/ids.ts";
import type { Claim, Order, RunnerPort } from "../../model/runner-port.ts";
import { createBackoff, sleep } from "../port/backoff.ts";
import type { Identity } from "../port/identity.ts";
import { classifyPortError, type PortFailure } from "../port/port-failure.ts";
import { createWakeup } from "../port/wakeup.ts";

/** Long-polls the coordinator for claims and orders. The open poll also keeps an idle runner's lease alive. */
export interface ClaimLoop {
  /**
   * The newest claim of this registration that returned runs, so it is closed for good. Never the open claim: the
   * coordinator may assign runs to that one while a report that names it is on its way.
   */
  readonly lastClosedClaimId: string | null;
  /** Call this when a run has released its slot. */
  onSlotFreed(): void;
  /** Takes no more claims but still receives orders. */
  drain(): void;
  stop(): Promise<void>;
}

export interface ClaimLoopOptions {
  port: RunnerPort;
  identity: Identity;
  countFreeSlots: () => number;
  /** Explains why the last countFreeSlots() returned fewer slots than are free. Returns null if it returned all of them. */
  getShortage: () => string | null;
  /** Synchronous, so that the run takes its slot before the next poll is sent. */
  startRun: (claim: Claim) => void;
  /** Called when a poll returned runs that this runner did not take. The next report gives them back. */
  onDeclined: () => void;
  dispatch: (order: Order) => void;
  newId: NewId;
  /** The pause before the first retry of a failed poll. It grows up to tenfold. */
  pollPauseMs: number;
  random: () => number;
  onFailure: (error: unknown, failure: PortFailure) => void;
}

/** A full runner polls for orders only if no slot becomes free for this long. Short runs then need no extra poll. */
const busyPauseMs = 25;

const afterClaimPauseMs = 1;

export function startClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const { port, identity } = options;
  const stopController = new AbortController();
  const backoff = createBackoff({
    firstMs: options.pollPauseMs,
    maxMs: options.pollPauseMs * 10,
    random: options.random,
  });
  const slotWakeup = createWakeup();
  let claimId = "";
  let claimsEpoch: number | null = null;
  let lastClosedClaimId: string | null = null;
  let ackOrder = 0;
  let isDraining = false;
  let openPoll: { want: number; cancel: AbortController } | null = null;

  /**
   * Closes the claims of the previous registration. With `lastClosedClaimId` null, reports refer to the start of the
   * new epoch.
   */
  function startEpoch(epoch: number): void {
    if (epoch === claimsEpoch) return;
    claimsEpoch = epoch;
    claimId = options.newId();
    lastClosedClaimId = null;
  }

  async function pollOnce(): Promise<void> {
    const { runner_id, epoch } = await identity.current();
    startEpoch(epoch);
    const want = isDraining ? 0 : Math.max(0, options.countFreeSlots());
    // A draining runner starts no run at all, not even one that resumes a session on this runner.
    const shortage = isDraining ? "it is draining" : options.getShortage();
    const cancel = new AbortController();
    openPoll = { want, cancel };
    const sentAt = performance.now();
    try {
      const response = await port.poll(
        { runner_id, epoch, claim_id: claimId, want, ...(shortage === null ? {} : { shortage }), ack_order: ackOrder },
        AbortSignal.any([cancel.signal, stopController.signal]),
      );
      // The coordinator may have taken back the claims of an older epoch.
      const isStale = (await identity.current()).epoch !== epoch;
      // Runs that arrive while draining are not reported as held, so the coordinator takes them back at no cost.
      const accepts = !isStale && !isDraining && !stopController.signal.aborted;
      if (accepts) for (const claim of response.claims) options.startRun(claim);
      else if (response.claims.length > 0) options.onDeclined();
      // An empty claim stays open: reusing its id spares the coordinator a write.
      if (response.claims.length > 0 && !isStale) {
        lastClosedClaimId = claimId;
        claimId = options.newId();
      }
      for (const order of response.orders) {
        if (order.no <= ackOrder) continue;
        options.dispatch(order);
        ackOrder = order.no;
      }
      backoff.reset();
      // Let the new runs start first: short ones may finish, and the next poll then fills their slots too.
      if (response.claims.length > 0) await sleep(afterClaimPauseMs, stopController.signal);
      // Do not spin on a port that does not hold polls open.
      if (response.claims.length + response.orders.length === 0 && performance.now() - sentAt < 5)
        await sleep(5, stopController.signal);
    } catch (error) {
      // Retry with the same claim_id: the coordinator repeats a response that was lost.
      if (cancel.signal.aborted || stopController.signal.aborted) return;
      // The coordinator ends the polls of an older registration.
      if (await identity.hasRenewed(epoch)) return;
      const failure = classifyPortError(error);
      options.onFailure(error, failure);
      if (failure === "register") await identity.renew(epoch);
      else await backoff.wait(stopController.signal);
    } finally {
      openPoll = null;
    }
  }

  async function run(): Promise<void> {
    while (!stopController.signal.aborted) {
      if (!isDraining && options.countFreeSlots() <= 0) {
        await slotWakeup.wait(busyPauseMs, stopController.signal);
        // Short runs finish in bursts: fill several slots with one poll.
        await sleep(afterClaimPauseMs, stopController.signal);
      }
      if (!stopController.signal.aborted) await pollOnce();
    }
  }
  // The identity rejects only when the runner stops.
  const running = run().catch((error: unknown) => {
    if (!stopController.signal.aborted) options.onFailure(error, "silent");
  });

  return {
    get lastClosedClaimId() {
      return lastClosedClaimId;
    },
    onSlotFreed() {
      slotWakeup.notify();
      // Abort only a poll that asked for no runs; any other poll returns with the next run anyway.
      if (!isDraining && openPoll?.want === 0) openPoll.cancel.abort();
    },
    drain() {
      isDraining = true;
      slotWakeup.notify();
      if (openPoll && openPoll.want > 0) openPoll.cancel.abort();
    },
    async stop() {
      stopController.abort();
      await running;
    },
  };
}
