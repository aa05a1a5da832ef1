import type { ScheduleDefinition, Slot, StoredSchedule } from "../../model/schedule.ts";
import type { ScheduleReads } from "../../model/schedule-ops.ts";
import { countFittingRows } from "./events.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";

const slotColumns = ["slot", "outcome", "why", "detail", "manual", "at", "run_id"] as const;
const runColumns = `runs.status as run_status, runs.reason as run_reason`;
const selectWithLast = `
  select schedules.*, ${slotColumns.map((name) => `last.${name} as slot_${name}`).join(", ")}, ${runColumns}
  from schedules
  left join schedule_slots last on last.schedule_id = schedules.schedule_id and last.slot = (
    select max(slot) from schedule_slots newest where newest.schedule_id = schedules.schedule_id)
  left join runs on runs.run_id = last.run_id`;
const selectSizes = `select octet_length(schedules.body) as size from schedules`;
const selectOne = `${selectWithLast} where schedules.schedule_id = ?`;
const selectDue = `
  select * from schedules where due_at is not null and due_at <= ? order by due_at limit ?`;
const selectNext = `
  select due_at from schedules where due_at is not null and due_at > ? order by due_at limit 1`;
const selectSlots = `
  select ${slotColumns.map((name) => `schedule_slots.${name} as slot_${name}`).join(", ")}, ${runColumns}
  from schedule_slots left join runs on runs.run_id = schedule_slots.run_id
  where schedule_id = ?1 and (slot < ?2 or ?2 is null) order by slot desc limit ?3`;

export function* readSchedule(schedule_id: string): Work<StoredSchedule | null> {
  const [row] = yield first(selectOne, toColumn(schedule_id));
  return row === undefined ? null : toStoredSchedule(row);
}

export function* readSchedules(
  filter: Parameters<ScheduleReads["schedules"]>[0],
  page: Parameters<ScheduleReads["schedules"]>[1],
): Work<StoredSchedule[]> {
  const filters: [string, string | undefined][] = [
    ["schedules.created_by = ?", filter.created_by],
    ["schedules.agent_name = ?", filter.agent_name],
    ["schedules.name = ?", filter.name],
    ["schedules.schedule_id > ?", page.after],
  ];
  const conditions = filters.filter((pair): pair is [string, string] => pair[1] !== undefined);
  const where = conditions.length === 0 ? "" : `where ${conditions.map(([condition]) => condition).join(" and ")}`;
  const values: SqlValue[] = conditions.map(([, value]) => toColumn(value));
  const pageClause = `${where} order by schedules.schedule_id limit ?`;
  const fitting = countFittingRows(yield all(`${selectSizes} ${pageClause}`, ...values, page.limit));
  const rows = yield all(`${selectWithLast} ${pageClause}`, ...values, fitting);
  return rows.map(toStoredSchedule);
}

export function* readSlots(schedule_id: string, page: { before?: string; limit: number }): Work<Slot[]> {
  const rows = yield all(selectSlots, toColumn(schedule_id), page.before ?? null, page.limit);
  return rows.flatMap((row) => toSlot(row) ?? []);
}

/** Two index lookups, however many schedules there are. */
export function* readDueSchedules(by: string, limit: number): Work<{ due: StoredSchedule[]; next: string | null }> {
  const rows = yield all(selectDue, by, limit);
  const [next] = rows.length > 0 ? [] : yield first(selectNext, by);
  return { due: rows.map(toStoredSchedule), next: textOrNull(next?.["due_at"]) };
}

export function toStoredSchedule(row: Row): StoredSchedule {
  return {
    schedule_id: fromColumn(String(row["schedule_id"])),
    agent_name: fromColumn(String(row["agent_name"])),
    created_by: fromColumn(String(row["created_by"])),
    // Only these values are ever written.
    source: row["source"] as StoredSchedule["source"],
    // put_schedule or sync_schedules wrote it.
    definition: JSON.parse(String(row["body"])) as ScheduleDefinition,
    enabled: row["enabled"] === 1,
    anchor: String(row["anchor"]),
    due_at: textOrNull(row["due_at"]),
    rev: Number(row["rev"]),
    last_run_id: textOrNull(row["last_run_id"]),
    session_id: textOrNull(row["session_id"]),
    created_at: String(row["created_at"]),
    updated_at: String(row["updated_at"]),
    last: toSlot(row),
  };
}

function toSlot(row: Row): Slot | null {
  const slot = textOrNull(row["slot_slot"]);
  if (slot === null) return null;
  return {
    slot,
    // Only these values are ever written.
    outcome: row["slot_outcome"] as Slot["outcome"],
    why: row["slot_why"] as Slot["why"],
    detail: textOrNull(row["slot_detail"]),
    manual: row["slot_manual"] === 1,
    at: String(row["slot_at"]),
    run_id: textOrNull(row["slot_run_id"]),
    run_status: row["run_status"] as Slot["run_status"],
    run_reason: row["run_reason"] as Slot["run_reason"],
  };
}
