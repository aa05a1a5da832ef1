import type { FireTimesOf } from "../define/fire-times.ts";
import type { Agent } from "../model/agent.ts";
import type { StoredSchedule } from "../model/schedule.ts";
import type { FireSchedule } from "../model/schedule-ops.ts";
import type { Store } from "../model/store.ts";
import { syncFileSchedules } from "./agent-schedules.ts";
import type { TriggerClock } from "./clock.ts";
import { decideSlots, type FireDeps, type Prepare } from "./fire.ts";

export interface SchedulerOptions {
  store: Pick<Store, "apply" | "read" | "changes">;
  clock: TriggerClock;
  prepare: Prepare;
  fireTimes: FireTimesOf;
  /** No other coordinator reads agent files into this record. */
  alone: boolean;
  /** Told of what went wrong; it is tried again. */
  onFault: (fault: unknown) => void;
}

export interface Scheduler {
  /** The agent files as they are now. Agents that are missing keep their schedules unless all files are sound. */
  setFiles(agents: readonly Agent[], sound: boolean): void;
  start(): void;
  /** Resolves when what is under way is stored. Idempotent. */
  stop(): Promise<void>;
}

/** Read at once. */
const mostDue = 100;
/** Stored in one transaction: everybody else waits for it. */
const storedAtOnce = 25;
const pauseAfterFaultMs = 1000;

/**
 * Fires what is due. One timer for the earliest slot: the record is read when that has come, and when a commit has changed
 * schedules. Any number of coordinators do the same; for each slot the first transaction counts.
 */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { store, clock, onFault } = options;
  const stopping = new AbortController();
  let files: { agents: readonly Agent[]; sound: boolean } | null = null;
  let known: readonly string[] | null = null;
  let isStale = true;
  let wake = (): void => undefined;
  let working: Promise<void> = Promise.resolve();
  let unsubscribe = (): void => undefined;
  return {
    setFiles(agents, sound) {
      files = { agents, sound };
      look();
    },
    start() {
      unsubscribe = store.changes((change) => {
        if (change.schedules || change.foreign) look();
      });
      working = work();
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      wake();
      await working;
    },
  };

  function look(): void {
    isStale = true;
    wake();
  }

  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await syncOnce();
        isStale = false;
        const now = clock.now();
        const { due, next } = await store.read.due_schedules(new Date(now).toISOString(), mostDue);
        if (due.length > 0) await fireAll(due, now);
        else await untilDue(next);
      } catch (fault) {
        onFault(fault);
        await pause(pauseAfterFaultMs);
      }
    }
  }

  /** Returns early where schedules have changed. Asks nothing of the record. */
  async function untilDue(next: string | null): Promise<void> {
    const due = next === null ? Infinity : Date.parse(next);
    while (!isStale && !stopping.signal.aborted) {
      const left = due - clock.now();
      if (left <= 0) return;
      await pause(left);
    }
  }

  async function pause(ms: number): Promise<void> {
    const waking = new AbortController();
    wake = () => waking.abort();
    if (stopping.signal.aborted) return;
    await clock.wait(ms, waking.signal);
  }

  async function fireAll(due: readonly StoredSchedule[], now: number): Promise<void> {
    const deps: FireDeps = options;
    for (let from = 0; from < due.length && !stopping.signal.aborted; from += storedAtOnce) {
      const some = due.slice(from, from + storedAtOnce);
      const ops = await Promise.all(some.map((schedule) => decideSlots(schedule, now, deps)));
      await storeAll(some, ops, now);
    }
  }

  /** A conflict means that somebody else was first, or that the schedule has changed: the next look shows which. */
  async function storeAll(
    schedules: readonly StoredSchedule[],
    ops: readonly FireSchedule[],
    now: number,
  ): Promise<void> {
    const results = await store.apply(ops);
    for (const [index, result] of results.entries()) {
      const schedule = schedules[index];
      if (result.ok || result.conflict !== "session" || schedule === undefined) continue;
      // It was deleted in this very moment: begin a new one.
      await store.apply([await decideSlots({ ...schedule, session_id: null }, now, options)]);
    }
  }

  async function syncOnce(): Promise<void> {
    if (files === null) return;
    const { agents, sound } = files;
    const names = agents.map(({ name }) => name);
    const gone = known?.filter((name) => !names.includes(name)) ?? (options.alone ? "unknown" : []);
    const ops = syncFileSchedules(agents, sound ? gone : [], clock.now(), options.fireTimes);
    for (const op of ops) await store.apply([op]);
    if (files.agents === agents) files = null;
    // Until all files are sound again, an agent that is missing may only be misspelt.
    known = sound ? names : known;
  }
}
