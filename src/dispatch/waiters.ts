import type { Demands } from "../model/run.ts";
import { unmetDemands, type RunnerFacts } from "../record/matching.ts";

/** Who waits for work, in the order in which they are to be asked next. */
export interface Waiters {
  sit(runner_id: string, want: number): Seat;
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

export interface Seat {
  /** Set to 0 while nothing would be handed out here. */
  want: number;
  /** Set to false while it takes no run at all, whether it has free slots or not. */
  takesResumed: boolean;
  /** As far as is known; long ago: not at all. */
  leaseEnds: number;
  /** Woken since wakes were taken. */
  readonly rung: boolean;
  /**
   * Until then whatever becomes free wakes it, beside others. So does one with `only_agent` for ever: neither takes a
   * wake from others, as it may not be able to take the run.
   */
  know(runner: Waiting): void;
  /** What this seat was woken for since the last call. */
  takeWakes(): Wake[];
  /** Until it is woken, the time is over or the signal is given; at once where it was woken meanwhile. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** What it was woken for and did not look after goes to others. */
  leave(unserved: readonly Wake[]): void;
}

interface Place extends Seat {
  runner_id: string;
  /** null: not known yet. */
  runner: Waiting | null;
  wakes: Wake[];
  rung: boolean;
  ring: () => void;
}

export function createWaiters(): Waiters {
  const places = new Set<Place>();

  return {
    sit,
    wakeFor: (demands, resumed = false) => wakeOne({ demands, resumed }),
    wakeRunner(runner_id) {
      for (const place of places) if (place.runner_id === runner_id) wake(place);
    },
    wakeRunners(runner_ids) {
      if (runner_ids.size === 0) return;
      for (const place of places) if (runner_ids.has(place.runner_id)) wake(place);
    },
    wakeAll() {
      for (const place of places) wake(place);
    },
    get runnerIds() {
      return [...new Set([...places].map(({ runner_id }) => runner_id))];
    },
    leasesEndingBefore(time) {
      const found = new Set<string>();
      for (const { runner_id, runner, leaseEnds } of places)
        if (runner !== null && leaseEnds < time) found.add(runner_id);
      return [...found];
    },
    renewed(runner_ids, until) {
      const these = new Set(runner_ids);
      for (const place of places) if (these.has(place.runner_id)) place.leaseEnds = Math.max(place.leaseEnds, until);
    },
    get size() {
      return places.size;
    },
  };

  function sit(runner_id: string, want: number): Seat {
    const place: Place = {
      runner_id,
      runner: null,
      want,
      takesResumed: true,
      leaseEnds: Number.NEGATIVE_INFINITY,
      wakes: [],
      rung: false,
      ring: () => undefined,
      know(runner) {
        place.runner = runner;
      },
      takeWakes() {
        place.rung = false;
        return place.wakes.splice(0);
      },
      wait: (ms, signal) => waitAt(place, ms, signal),
      leave(unserved) {
        places.delete(place);
        for (const one of [...unserved, ...place.wakes.splice(0)]) wakeOne(one);
      },
    };
    places.add(place);
    return place;
  }

  /** The first that sleeps; where all who match are awake already, one that still has room for it. */
  function wakeOne(one: Wake): void {
    let awake: Place | null = null;
    for (const place of places) {
      const hasRoom = place.wakes.length < place.want;
      if (!hasRoom && !(one.resumed && place.takesResumed)) continue;
      if (place.runner === null) {
        wake(place);
        continue;
      }
      if (unmetDemands(one.demands, place.runner).length > 0) continue;
      if (typeof place.runner.only_agent === "string") {
        wake(place);
        continue;
      }
      if (place.wakes.length > 0 || !hasRoom) {
        awake ??= place;
        continue;
      }
      turn(place, one);
      return;
    }
    if (awake !== null) turn(awake, one);
  }

  function turn(place: Place, one: Wake): void {
    place.wakes.push(one);
    places.delete(place);
    places.add(place);
    wake(place);
  }
}

function wake(place: Place): void {
  place.rung = true;
  place.ring();
}

function waitAt(place: Place, ms: number, signal: AbortSignal): Promise<void> {
  if (place.rung || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // Whole ones: timers of one length share a list, of which there would be thousands. One more: never before the time.
    const timer = setTimeout(done, Math.ceil(ms) + 1);
    signal.addEventListener("abort", done);
    place.ring = done;
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      place.ring = () => undefined;
      resolve();
    }
  });
}
