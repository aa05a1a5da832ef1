import type { CreateRun } from "./create-run.ts";
import type { NewSchedule, ScheduleSource, SkipReason, Slot, StoredSchedule } from "./schedule.ts";

export type ScheduleOp = PutSchedule | SyncSchedules | DeleteSchedule | FireSchedule;

/**
 * Creates or changes a standalone schedule, or enables or disables an agent's schedule. `rev` is the revision that the
 * caller has read, and a later change is a conflict. Without `rev` the schedule is new.
 */
export interface PutSchedule {
  op: "put_schedule";
  schedule: NewSchedule & { enabled: boolean };
  rev?: number;
}

/**
 * Updates the stored schedules to match the agents' definitions. Leaves unchanged definitions alone and keeps what a
 * person has enabled or disabled. Removes every other schedule of `agents`, or of all agents of this source if null.
 */
export interface SyncSchedules {
  op: "sync_schedules";
  source: Exclude<ScheduleSource, "api">;
  agents: readonly string[] | null;
  schedules: readonly NewSchedule[];
}

/** Deletes a schedule. Its history stays until it expires, and reappears with a schedule of the same id. */
export interface DeleteSchedule {
  op: "delete_schedule";
  schedule_id: string;
}

/**
 * Settles the due slots of one schedule: records the `skipped` ones, creates `run` if the overlap policy allows it, and
 * advances `due_at`. A slot is settled only once. Stores nothing and reports a conflict if the schedule has changed.
 */
export interface FireSchedule {
  op: "fire_schedule";
  schedule_id: string;
  /** Absent for a manual run, which ignores the schedule's times and overlap policy. */
  due?: { rev: number; at: string; next: string | null };
  skipped: readonly { slot: string; why: SkipReason; detail: string | null }[];
  run?: { slot: string; create: CreateRun };
  /** Time on the trigger clock. */
  at: string;
}

export type ScheduleResult =
  | { ok: true; op: "put_schedule" }
  | { ok: true; op: "sync_schedules"; changed: number }
  | { ok: true; op: "delete_schedule" }
  /** `settled` counts only the slots that this operation settled. */
  | { ok: true; op: "fire_schedule"; run_id: string | null; settled: number }
  /** `session`: the session to continue no longer exists. */
  | { ok: false; conflict: "not_found" | "changed" | "name_taken" | "session" };

export interface ScheduleReads {
  schedule(schedule_id: string): Promise<StoredSchedule | null>;
  /** Sorted by id. `after` is the last id of the previous page. */
  schedules(
    filter: { created_by?: string; agent_name?: string; name?: string },
    page: { after?: string; limit: number },
  ): Promise<StoredSchedule[]>;
  /** Newest first; `before` is a slot. */
  slots(schedule_id: string, page: { before?: string; limit: number }): Promise<Slot[]>;
  /** The schedules that are due at the time `by`, earliest first, and the time of the next slot after it. */
  due_schedules(by: string, limit: number): Promise<{ due: StoredSchedule[]; next: string | null }>;
}
