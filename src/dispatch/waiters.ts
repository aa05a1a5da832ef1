import type { ClaimRuns, DispatchResult } from "../model/dispatch-ops.ts";
import type { Demands } from "../model/run.ts";
import { findUnmetDemands, type RunnerFacts } from "../record/matching.ts";

/** The held polls that wait for work, in round-robin order. */
export interface Waiters {
  add(runner_id: string, want: number): Waiter;
  /**
   * Wakes one matching runner for a run that became claimable, in round-robin order. For a `resumed` run this may be a
   * runner without a free slot, if no other matches.
   */
  wakeFor(demands: Demands, resumed?: boolean): void;
  /**
   * Reserves the waiter that would be woken for such a run, if it is asleep and has an offer, so that the transaction
   * that creates the run can also claim it for this waiter.
   */
  reserve(demands: Demands): Reservation | null;
  wakeRunner(runner_id: string): void;
  wakeRunners(runner_ids: ReadonlySet<string>): void;
  wakeAll(): void;
  readonly runnerIds: readonly string[];
  /**
   * Returns the runners whose lease ends before this time on this process's clock. Excludes waiters that are not
   * identified yet: a poll with another runner's id must not renew that runner's lease.
   */
  findLeasesEndingBefore(time: number): string[];
  /** Notes that the leases of these runners now end at `until`, unless they already end later. */
  extendLeases(runner_ids: readonly string[], until: number): void;
  readonly size: number;
}

type WaitingRunner = RunnerFacts & { only_agent?: string | null };

/** A run that became claimable. */
export interface Wake {
  demands: Demands;
  resumed: boolean;
}

export interface Reservation {
  /** The offer of the waiter. */
  claim: ClaimRuns;
  /** Wakes the waiter with the result of the claim; null if the transaction failed. */
  settle(result: ClaimResult | null): void;
}

export type ClaimResult = Extract<DispatchResult, { op: "claim_runs" } | { ok: false }>;

export interface Waiter {
  /** The claim with which a run may be claimed for this waiter while it sleeps. */
  offer: ClaimRuns | null;
  /** How many runs it can take. 0 while no runs are assigned. */
  want: number;
  /** False while the runner accepts no run at all, not even a resumed one. */
  takesResumed: boolean;
  /** When the runner's lease ends, on this process's clock; -Infinity until known. */
  leaseEnds: number;
  /** Whether the waiter was woken since the last call of takeWakes. */
  readonly notified: boolean;
  /** Whether the waiter was closed because the runner has more recent polls. Its poll must end. */
  readonly isClosed: boolean;
  /**
   * Sets the facts about the runner. Until then every claimable run wakes this waiter in addition to another one,
   * because it may not be able to take the run. Waiters of runners with `only_agent` are always woken like that. To
   * limit these extra wakes, only the latest waiters of one runner stay open.
   */
  identify(runner: WaitingRunner): void;
  /** Returns the runs that this waiter was woken for since the last call. */
  takeWakes(): Wake[];
  /** Returns the result of a claim that was made for this waiter since the last call. */
  takeClaimed(): ClaimResult | null;
  /** Resolves when the waiter is woken (or already was), the time is up, or the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Removes the waiter and wakes others for the runs that it was woken for and did not claim. */
  remove(unclaimed: readonly Wake[]): void;
}

/**
 * A runner has one poll at a time. It has more waiters only while the coordinator has not noticed that a connection
 * broke.
 */
export const maxWaitersPerRunner = 4;

interface WaiterEntry extends Waiter {
  runner_id: string;
  isClosed: boolean;
  /** null until the waiter is identified. */
  runner: WaitingRunner | null;
  wakes: Wake[];
  notified: boolean;
  isAsleep: boolean;
  /** Whether a claim is being made for this waiter. It then stays asleep even if its time is up. */
  isReserved: boolean;
  claimed: ClaimResult | null;
  notify: () => void;
}

export function createWaiters(): Waiters {
  const entries = new Set<WaiterEntry>();
  const byRunner = new Map<string, Set<WaiterEntry>>();

  return {
    add,
    wakeFor: (demands, resumed = false) => wakeOne({ demands, resumed }),
    reserve(demands) {
      for (const entry of entries) if (canReserve(entry, demands)) return reserve(entry, entry.offer);
      return null;
    },
    wakeRunner,
    wakeRunners: (runner_ids) => runner_ids.forEach(wakeRunner),
    wakeAll() {
      for (const entry of entries) wake(entry);
    },
    get runnerIds() {
      return [...byRunner.keys()];
    },
    findLeasesEndingBefore(time) {
      const runnerIds = new Set<string>();
      for (const { runner_id, runner, leaseEnds } of entries)
        if (runner !== null && leaseEnds < time) runnerIds.add(runner_id);
      return [...runnerIds];
    },
    extendLeases(runner_ids, until) {
      for (const runner_id of runner_ids)
        for (const entry of byRunner.get(runner_id) ?? []) entry.leaseEnds = Math.max(entry.leaseEnds, until);
    },
    get size() {
      return entries.size;
    },
  };

  function add(runner_id: string, want: number): Waiter {
    const entry: WaiterEntry = {
      runner_id,
      runner: null,
      want,
      takesResumed: true,
      leaseEnds: Number.NEGATIVE_INFINITY,
      wakes: [],
      notified: false,
      isClosed: false,
      offer: null,
      isAsleep: false,
      isReserved: false,
      claimed: null,
      notify: () => undefined,
      identify(runner) {
        entry.runner = runner;
        closeOldest(runner_id);
      },
      takeWakes() {
        entry.notified = false;
        return entry.wakes.splice(0);
      },
      takeClaimed() {
        const { claimed } = entry;
        entry.claimed = null;
        return claimed;
      },
      wait: (ms, signal) => waitForWake(entry, ms, signal),
      remove(unclaimed) {
        entries.delete(entry);
        const runnerEntries = byRunner.get(runner_id);
        runnerEntries?.delete(entry);
        if (runnerEntries?.size === 0) byRunner.delete(runner_id);
        for (const claimable of [...unclaimed, ...entry.wakes.splice(0)]) wakeOne(claimable);
      },
    };
    entries.add(entry);
    const runnerEntries = byRunner.get(runner_id);
    if (runnerEntries === undefined) byRunner.set(runner_id, new Set([entry]));
    else runnerEntries.add(entry);
    return entry;
  }

  function wakeRunner(runner_id: string): void {
    for (const entry of byRunner.get(runner_id) ?? []) wake(entry);
  }

  /** Waiters that are not identified do not count: a poll with another runner's id must not close that runner's polls. */
  function closeOldest(runner_id: string): void {
    const openEntries = [...(byRunner.get(runner_id) ?? [])].filter(
      ({ runner, isClosed }) => runner !== null && !isClosed,
    );
    for (const entry of openEntries.slice(0, -maxWaitersPerRunner)) {
      entry.isClosed = true;
      wake(entry);
    }
  }

  function reserve(entry: WaiterEntry, claim: ClaimRuns): Reservation {
    entry.isReserved = true;
    return {
      claim,
      settle(result) {
        entry.isReserved = false;
        entry.claimed = result;
        wake(entry);
        // If this waiter's caller has disconnected, the runner may already be polling again, with the claim that now
        // has the run.
        if (!entries.has(entry)) wakeRunner(entry.runner_id);
      },
    };
  }

  /** Picks the first matching waiter that is asleep, or else one that is awake and can take another run. */
  function wakeOne(claimable: Wake): void {
    let awakeEntry: WaiterEntry | null = null;
    for (const entry of entries) {
      if (entry.isClosed) continue;
      const hasRoom = entry.wakes.length < entry.want;
      if (!hasRoom && !(claimable.resumed && entry.takesResumed)) continue;
      if (entry.runner === null) {
        wake(entry);
        continue;
      }
      if (findUnmetDemands(claimable.demands, entry.runner).length > 0) continue;
      if (typeof entry.runner.only_agent === "string") {
        wake(entry);
        continue;
      }
      if (entry.wakes.length > 0 || !hasRoom) {
        awakeEntry ??= entry;
        continue;
      }
      assign(entry, claimable);
      return;
    }
    if (awakeEntry !== null) assign(awakeEntry, claimable);
  }

  /** Wakes the waiter for this run and moves it to the end of the queue. */
  function assign(entry: WaiterEntry, claimable: Wake): void {
    entry.wakes.push(claimable);
    entries.delete(entry);
    entries.add(entry);
    wake(entry);
  }
}

function canReserve(entry: WaiterEntry, demands: Demands): entry is WaiterEntry & { offer: ClaimRuns } {
  const { isAsleep, isReserved, isClosed, notified, runner, offer, want, wakes } = entry;
  if (!isAsleep || isReserved || isClosed || notified || offer === null || want < 1 || wakes.length > 0) return false;
  return runner !== null && typeof runner.only_agent !== "string" && findUnmetDemands(demands, runner).length === 0;
}

/** A reserved waiter wakes once its claim is settled. */
function wake(entry: WaiterEntry): void {
  entry.notified = true;
  if (!entry.isReserved) entry.notify();
}

function waitForWake(entry: WaiterEntry, ms: number, signal: AbortSignal): Promise<void> {
  if (entry.notified || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // Node keeps one list per timer length, so round to whole milliseconds. Add one, so that the timer never fires
    // early.
    const timer = setTimeout(
      () => {
        if (!entry.isReserved) done();
      },
      Math.ceil(ms) + 1,
    );
    entry.isAsleep = true;
    signal.addEventListener("abort", done);
    entry.notify = done;
    function done(): void {
      clearTimeout(timer);
      entry.isAsleep = false;
      signal.removeEventListener("abort", done);
      entry.notify = () => undefined;
      resolve();
    }
  });
}
