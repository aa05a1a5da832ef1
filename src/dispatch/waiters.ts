import type { Demands } from "../model/run.ts";
import { unmetDemands, type RunnerFacts } from "../record/matching.ts";

/** Who waits for work, in the order in which they are to be asked next. */
export interface Waiters {
  add(runner_id: string, want: number): Waiter;
  /**
   * A run with these demands became free: one runner that could take it is woken, each in its turn. `resumed`: also one
   * that has no free slot, if there is no other.
   */
  wakeFor(demands: Demands, resumed?: boolean): void;
  wakeRunner(runner_id: string): void;
  wakeRunners(runner_ids: ReadonlySet<string>): void;
  wakeAll(): void;
  readonly runnerIds: readonly string[];
  /**
   * Whose lease ends before that, by the clock of this process as always here. Nobody of whom nothing is known: who sits
   * down in another's name must not keep that one alive.
   */
  leasesEndingBefore(time: number): string[];
  renewed(runner_ids: readonly string[], until: number): void;
  readonly size: number;
}

type Waiting = RunnerFacts & { only_agent?: string | null };

/** What became free. */
export interface Wake {
  demands: Demands;
  resumed: boolean;
}

export interface Waiter {
  /** Set to 0 while nothing would be handed out here. */
  want: number;
  /** Set to false while it takes no run at all, whether it has free slots or not. */
  takesResumed: boolean;
  /** As far as is known; long ago: not at all. */
  leaseEnds: number;
  /** Woken since wakes were taken. */
  readonly notified: boolean;
  /**
   * Until then whatever becomes free wakes it, beside others. So does one with `only_agent` for ever: neither takes a
   * wake from others, as it may not be able to take the run.
   */
  identify(runner: Waiting): void;
  /** What this waiter was woken for since the last call. */
  takeWakes(): Wake[];
  /** Until it is woken, the time is over or the signal is given; at once where it was woken meanwhile. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** What it was woken for and did not look after goes to others. */
  remove(unserved: readonly Wake[]): void;
}

interface WaiterEntry extends Waiter {
  runner_id: string;
  /** null: not known yet. */
  runner: Waiting | null;
  wakes: Wake[];
  notified: boolean;
  notify: () => void;
}

export function createWaiters(): Waiters {
  const entries = new Set<WaiterEntry>();

  return {
    add,
    wakeFor: (demands, resumed = false) => wakeOne({ demands, resumed }),
    wakeRunner(runner_id) {
      for (const entry of entries) if (entry.runner_id === runner_id) wake(entry);
    },
    wakeRunners(runner_ids) {
      if (runner_ids.size === 0) return;
      for (const entry of entries) if (runner_ids.has(entry.runner_id)) wake(entry);
    },
    wakeAll() {
      for (const entry of entries) wake(entry);
    },
    get runnerIds() {
      return [...new Set([...entries].map(({ runner_id }) => runner_id))];
    },
    leasesEndingBefore(time) {
      const found = new Set<string>();
      for (const { runner_id, runner, leaseEnds } of entries)
        if (runner !== null && leaseEnds < time) found.add(runner_id);
      return [...found];
    },
    renewed(runner_ids, until) {
      const these = new Set(runner_ids);
      for (const entry of entries) if (these.has(entry.runner_id)) entry.leaseEnds = Math.max(entry.leaseEnds, until);
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
      notify: () => undefined,
      identify(runner) {
        entry.runner = runner;
      },
      takeWakes() {
        entry.notified = false;
        return entry.wakes.splice(0);
      },
      wait: (ms, signal) => waitAt(entry, ms, signal),
      remove(unserved) {
        entries.delete(entry);
        for (const one of [...unserved, ...entry.wakes.splice(0)]) wakeOne(one);
      },
    };
    entries.add(entry);
    return entry;
  }

  /** The first that sleeps; where all who match are awake already, one that still has room for it. */
  function wakeOne(one: Wake): void {
    let awake: WaiterEntry | null = null;
    for (const entry of entries) {
      const hasRoom = entry.wakes.length < entry.want;
      if (!hasRoom && !(one.resumed && entry.takesResumed)) continue;
      if (entry.runner === null) {
        wake(entry);
        continue;
      }
      if (unmetDemands(one.demands, entry.runner).length > 0) continue;
      if (typeof entry.runner.only_agent === "string") {
        wake(entry);
        continue;
      }
      if (entry.wakes.length > 0 || !hasRoom) {
        awake ??= entry;
        continue;
      }
      turn(entry, one);
      return;
    }
    if (awake !== null) turn(awake, one);
  }

  function turn(entry: WaiterEntry, one: Wake): void {
    entry.wakes.push(one);
    entries.delete(entry);
    entries.add(entry);
    wake(entry);
  }
}

function wake(entry: WaiterEntry): void {
  entry.notified = true;
  entry.notify();
}

function waitAt(entry: WaiterEntry, ms: number, signal: AbortSignal): Promise<void> {
  if (entry.notified || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // Whole ones: timers of one length share a list, of which there would be thousands. One more: never before the time.
    const timer = setTimeout(done, Math.ceil(ms) + 1);
    signal.addEventListener("abort", done);
    entry.notify = done;
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      entry.notify = () => undefined;
      resolve();
    }
  });
}
