import type { Demands } from "../model/run.ts";
import { unmetDemands, type RunnerFacts } from "../record/matching.ts";

/** Who waits for work, in the order in which they are to be asked next. */
export interface Waiters {
  /** One with `only_agent` takes no wake from others: it may not be able to take the run. */
  sit(runner: Waiting, want: number): Seat;
  /** A run with these demands became free: one runner that could take it is woken, each in its turn. */
  wakeFor(demands: Demands): void;
  wakeRunner(runner_id: string): void;
  wakeAll(): void;
  readonly runnerIds: readonly string[];
  readonly size: number;
}

type Waiting = RunnerFacts & { only_agent?: string | null };

export interface Seat {
  /** Set to 0 while nothing would be handed out here. */
  want: number;
  /** What this seat was woken for since the last call. */
  takeWakes(): Demands[];
  /** Until it is woken, the time is over or the signal is given; at once where it was woken meanwhile. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** What it was woken for and did not look after goes to others. */
  leave(unserved: readonly Demands[]): void;
}

interface Place extends Seat {
  runner: Waiting;
  wakes: Demands[];
  rung: boolean;
  ring: () => void;
}

export function createWaiters(): Waiters {
  const places = new Set<Place>();

  return {
    sit,
    wakeFor,
    wakeRunner(runner_id) {
      for (const place of places) if (place.runner.runner_id === runner_id) wake(place);
    },
    wakeAll() {
      for (const place of places) wake(place);
    },
    get runnerIds() {
      return [...new Set([...places].map((place) => place.runner.runner_id))];
    },
    get size() {
      return places.size;
    },
  };

  function sit(runner: Waiting, want: number): Seat {
    const place: Place = {
      runner,
      want,
      wakes: [],
      rung: false,
      ring: () => undefined,
      takeWakes() {
        place.rung = false;
        return place.wakes.splice(0);
      },
      wait: (ms, signal) => waitAt(place, ms, signal),
      leave(unserved) {
        places.delete(place);
        for (const demands of [...unserved, ...place.wakes.splice(0)]) wakeFor(demands);
      },
    };
    places.add(place);
    return place;
  }

  /** The first that sleeps; where all who match are awake already, one that still has room for it. */
  function wakeFor(demands: Demands): void {
    let awake: Place | null = null;
    for (const place of places) {
      if (place.wakes.length >= place.want || unmetDemands(demands, place.runner).length > 0) continue;
      if (typeof place.runner.only_agent === "string") {
        wake(place);
        continue;
      }
      if (place.wakes.length > 0) {
        awake ??= place;
        continue;
      }
      turn(place, demands);
      return;
    }
    if (awake !== null) turn(awake, demands);
  }

  function turn(place: Place, demands: Demands): void {
    place.wakes.push(demands);
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
    const timer = setTimeout(done, ms);
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
