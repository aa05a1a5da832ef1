import type { GetSlotTimes } from "../define/slot-times.ts";
import type { Agent } from "../model/agent.ts";
import type { StoredSchedule } from "../model/schedule.ts";
import type { FireSchedule } from "../model/schedule-ops.ts";
import type { Store } from "../model/store.ts";
import { syncFileSchedules } from "./agent-schedules.ts";
import type { TriggerClock } from "./clock.ts";
import { buildSettleOp, type SettleSlotsDeps, type Prepare } from "./settle-slots.ts";

export interface SchedulerOptions {
  store: Pick<Store, "apply" | "read" | "changes">;
  clock: TriggerClock;
  prepare: Prepare;
  getSlotTimes: GetSlotTimes;
  /** Whether no other coordinator syncs agent files with this record. */
  isOnlyCoordinator: boolean;
  /** Called for each error. The scheduler retries. */
  onError: (error: unknown) => void;
}

export interface Scheduler {
  /** Sets the agents that the files define now. While a file is invalid, agents that are missing keep their schedules. */
  setFileAgents(agents: readonly Agent[], allValid: boolean): void;
  start(): void;
  /** Resolves when work in progress is stored. Idempotent. */
  stop(): Promise<void>;
}

/** The number of due schedules that are read at once. */
const maxDue = 100;
/** The number of schedules per transaction, which other writers wait for. */
const batchSize = 25;
const retryDelayMs = 1000;

/**
 * Starts the runs of due schedules. A single timer waits for the earliest slot. The scheduler reads the record when that slot is due
 * and when a commit has changed schedules. Several coordinators may do the same; the first transaction for a slot wins.
 */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { store, clock, onError } = options;
  const stopController = new AbortController();
  let pendingSync: { agents: readonly Agent[]; allValid: boolean } | null = null;
  let knownAgents: readonly string[] | null = null;
  let isStale = true;
  let wake = (): void => undefined;
  let workLoop: Promise<void> = Promise.resolve();
  let unsubscribe = (): void => undefined;
  return {
    setFileAgents(agents, allValid) {
      pendingSync = { agents, allValid };
      invalidate();
    },
    start() {
      unsubscribe = store.changes((change) => {
        if (change.schedules || change.fromOtherProcess) invalidate();
      });
      workLoop = work();
    },
    async stop() {
      unsubscribe();
      stopController.abort();
      wake();
      await workLoop;
    },
  };

  function invalidate(): void {
    isStale = true;
    wake();
  }

  async function work(): Promise<void> {
    while (!stopController.signal.aborted) {
      try {
        await syncPendingAgents();
        isStale = false;
        const now = clock.now();
        const { due, next } = await store.read.due_schedules(new Date(now).toISOString(), maxDue);
        if (due.length > 0) await fireAll(due, now);
        else await waitUntilDue(next);
      } catch (error) {
        onError(error);
        await pause(retryDelayMs);
      }
    }
  }

  /** Returns early if schedules change. Does not read the record. */
  async function waitUntilDue(next: string | null): Promise<void> {
    const due = next === null ? Infinity : Date.parse(next);
    while (!isStale && !stopController.signal.aborted) {
      const remainingMs = due - clock.now();
      if (remainingMs <= 0) return;
      await pause(remainingMs);
    }
  }

  async function pause(ms: number): Promise<void> {
    const pauseController = new AbortController();
    wake = () => pauseController.abort();
    if (stopController.signal.aborted) return;
    await clock.wait(ms, pauseController.signal);
  }

  async function fireAll(due: readonly StoredSchedule[], now: number): Promise<void> {
    const deps: SettleSlotsDeps = options;
    for (let from = 0; from < due.length && !stopController.signal.aborted; from += batchSize) {
      const batch = due.slice(from, from + batchSize);
      const ops = await Promise.all(batch.map((schedule) => buildSettleOp(schedule, now, deps)));
      await storeAll(batch, ops, now);
    }
  }

  /** Ignores most conflicts: another coordinator was first, or the schedule has changed, and the next read sees its new state. */
  async function storeAll(
    schedules: readonly StoredSchedule[],
    ops: readonly FireSchedule[],
    now: number,
  ): Promise<void> {
    const results = await store.apply(ops);
    for (const [index, result] of results.entries()) {
      const schedule = schedules[index];
      if (result.ok || result.conflict !== "session" || schedule === undefined) continue;
      // The session was deleted just now, so start a new one.
      await store.apply([await buildSettleOp({ ...schedule, session_id: null }, now, options)]);
    }
  }

  async function syncPendingAgents(): Promise<void> {
    if (pendingSync === null) return;
    const { agents, allValid } = pendingSync;
    const names = agents.map(({ name }) => name);
    const removedAgents =
      knownAgents?.filter((name) => !names.includes(name)) ?? (options.isOnlyCoordinator ? "unknown" : []);
    const ops = syncFileSchedules(agents, allValid ? removedAgents : [], clock.now(), options.getSlotTimes);
    for (const op of ops) await store.apply([op]);
    if (pendingSync.agents === agents) pendingSync = null;
    // While a file is invalid, it may be the file of a missing agent, so keep that agent known.
    knownAgents = allValid ? names : knownAgents;
  }
}
