import type { CreateRun } from "./create-run.ts";
import type { NewSchedule, ScheduleSource, SkipReason, Slot, StoredSchedule } from "./schedule.ts";

export type ScheduleOp = PutSchedule | SyncSchedules | DeleteSchedule | FireSchedule;

/**
 * A schedule that stands alone, or whether one of an agent is enabled. `rev` is what the caller has read: a change since is a
 * conflict. Absent: it is new.
 */
export interface PutSchedule {
  op: "put_schedule";
  schedule: NewSchedule & { enabled: boolean };
  rev?: number;
}

/**
 * The schedules of agents as they are defined now. One whose definition is the same stays as it is; one that only somebody has
 * enabled or disabled keeps that. Those of `agents` that are not listed are removed; null: of all agents of this source.
 */
export interface SyncSchedules {
  op: "sync_schedules";
  source: Exclude<ScheduleSource, "api">;
  agents: readonly string[] | null;
  schedules: readonly NewSchedule[];
}

/** Its history stays until it is too old, and comes back with a schedule of the same id. */
export interface DeleteSchedule {
  op: "delete_schedule";
  schedule_id: string;
}

/**
 * Decides slots of one schedule, each once: `skipped` in any case, `run` where the overlap policy lets it. Moves `due_at`.
 * A conflict, and nothing stored, where the schedule has changed since it was read.
 */
export interface FireSchedule {
  op: "fire_schedule";
  schedule_id: string;
  /** Absent: somebody wants a run now, whatever the times and the overlap policy say. */
  due?: { rev: number; at: string; next: string | null };
  skipped: readonly { slot: string; why: SkipReason; detail: string | null }[];
  run?: { slot: string; create: CreateRun };
  /** When, by the clock of triggers. */
  at: string;
}

export type ScheduleResult =
  | { ok: true; op: "put_schedule" }
  | { ok: true; op: "sync_schedules"; changed: number }
  | { ok: true; op: "delete_schedule" }
  /** `decided` by this very operation: a slot that has its line already is not among them. */
  | { ok: true; op: "fire_schedule"; run_id: string | null; decided: number }
  /** `session`: the one to continue has gone. */
  | { ok: false; conflict: "not_found" | "changed" | "name_taken" | "session" };

export interface ScheduleReads {
  schedule(schedule_id: string): Promise<StoredSchedule | null>;
  /** By id; `before` is the last of the page before, and all have a greater one. */
  schedules(
    filter: { created_by?: string; agent_name?: string; name?: string },
    page: { after?: string; limit: number },
  ): Promise<StoredSchedule[]>;
  /** Newest first; `before` is a slot. */
  slots(schedule_id: string, page: { before?: string; limit: number }): Promise<Slot[]>;
  /** What is due by then, earliest first, and the earliest slot of those that are not. */
  due_schedules(by: string, limit: number): Promise<{ due: StoredSchedule[]; next: string | null }>;
}
