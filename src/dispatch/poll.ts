import { PortError } from "../model/port-error.ts";
import type { PollAnswer, PollRequest } from "../model/runner-port.ts";
import type { Demands } from "../model/run.ts";
import type { Store } from "../model/store.ts";
import type { Waiters } from "./waiters.ts";

export interface PollDeps {
  store: Pick<Store, "apply" | "read">;
  waiters: Waiters;
  leaseMs: number;
  pollHoldMs: number;
  lowDisk: () => string | null;
  signAttempt: (run_id: string, attempt: number) => string;
  /** Ends every poll that is held. */
  stopped: AbortSignal;
}

/** Orders that a runner was given a moment ago and has not acknowledged are no reason to answer at once again. */
const orderAgainMs = 200;

const lookAtDiskMs = 3000;

/**
 * Asks the store for work and orders, and again whenever there may be some. Everything handed out is in
 * the store before it is answered: where the answer is lost, the same claim_id gets it again.
 */
export function createPoll(
  deps: PollDeps,
): (request: PollRequest, signal: AbortSignal, owner?: string) => Promise<PollAnswer> {
  const delivered = new Map<string, { no: number; at: number }>();

  return async function poll(request, caller, owner) {
    const signal = AbortSignal.any([caller, deps.stopped]);
    const runner = await deps.store.read.runner(request.runner_id);
    if (runner === null) throw portConflict("unknown_runner");
    const seat = deps.waiters.sit({ ...runner, executor_type: runner.executor.type }, request.want);
    const until = performance.now() + deps.pollHoldMs;
    let unserved: Demands[] = [];
    try {
      for (let again = false; !signal.aborted; again = true) {
        unserved = seat.takeWakes();
        const answer = await claim(request, again, owner);
        seat.want = answer.draining ? 0 : request.want;
        if (!answer.draining) unserved = unserved.slice(answer.claims.length);
        if (answer.claims.length > 0 || ordersAreDue(request.runner_id, answer.orders))
          return answered(request.runner_id, answer);
        // It found nothing it may have: whoever could not take these either need not be asked.
        if (!answer.draining) unserved = [];
        const leftMs = until - performance.now();
        if (leftMs <= 0) return answered(request.runner_id, answer);
        await seat.wait(Math.min(leftMs, pauseMs(answer)), signal);
      }
      return { claims: [], orders: [] };
    } finally {
      seat.leave(unserved);
    }
  };

  /** Whatever else there may be, it is woken for; its lease is renewed meanwhile with those of all who wait. */
  function pauseMs({ orders }: Pick<PollAnswer, "orders">): number {
    if (orders.length > 0) return orderAgainMs;
    return deps.lowDisk() === null ? Number.POSITIVE_INFINITY : lookAtDiskMs;
  }

  async function claim(request: PollRequest, again: boolean, owner: string | undefined) {
    const hold = deps.lowDisk();
    const [result] = await deps.store.apply([
      {
        op: "claim_runs",
        ...request,
        lease_ms: deps.leaseMs,
        ...(owner === undefined ? {} : { owner }),
        ...(hold === null ? {} : { hold }),
        ...(again ? { again } : {}),
      },
    ]);
    if (!result.ok) throw portConflict(result.conflict);
    return result;
  }

  function ordersAreDue(runner_id: string, orders: PollAnswer["orders"]): boolean {
    const last = orders.at(-1);
    if (last === undefined) return false;
    const before = delivered.get(runner_id);
    return before === undefined || last.no > before.no || performance.now() - before.at >= orderAgainMs;
  }

  function answered(runner_id: string, { claims, orders }: Awaited<ReturnType<typeof claim>>): PollAnswer {
    const last = orders.at(-1);
    if (last === undefined) delivered.delete(runner_id);
    else delivered.set(runner_id, { no: last.no, at: performance.now() });
    return {
      orders,
      claims: claims.map(({ run_id, attempt, invocation, correlation }) => ({
        run_id,
        attempt,
        invocation,
        correlation,
        attempt_token: deps.signAttempt(run_id, attempt),
      })),
    };
  }
}

export function portConflict(conflict: "unknown_runner" | "old_epoch" | "duplicate_runner"): PortError {
  const messages = {
    unknown_runner: "This runner is not registered here: it has to register again.",
    old_epoch: "This registration was replaced by a newer one of the same runner.",
    duplicate_runner: "Another live runner has this identity. Stop it, or give this one a name of its own.",
  };
  return new PortError(conflict, messages[conflict]);
}
