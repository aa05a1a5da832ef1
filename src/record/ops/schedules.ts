import type { NewSchedule } from "../../model/schedule.ts";
import type { DeleteSchedule, PutSchedule, ScheduleResult, SyncSchedules } from "../../model/schedule-ops.ts";
import { all, first, type Row, type SqlValue, write, type Work } from "../query.ts";
import { toStoredSchedule } from "../reads/schedules.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";

const selectSchedule = `
  select * from schedules where schedule_id = ?`;
const selectNamesake = `
  select 1 from schedules where agent_name = ? and created_by = ? and name = ? and source = 'api' and schedule_id <> ?`;
const insertSchedule = `
  insert into schedules (schedule_id, agent_name, name, created_by, source, body, enabled, anchor, due_at, rev, created_at, updated_at)
  values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?10)`;
const updateSchedule = `
  update schedules set agent_name = ?2, name = ?3, body = ?4, enabled = ?5, anchor = ?6, due_at = ?7, rev = rev + 1, updated_at = ?8
  where schedule_id = ?1`;
const selectSchedulesOfAgent = `
  select schedule_id from schedules where agent_name = ? and source = ?`;
const selectSchedulesOfSource = `
  select schedule_id from schedules where source = ?`;
const deleteRow = `
  delete from schedules where schedule_id = ? returning schedule_id`;

export function* putSchedule(tx: Transaction, { schedule, rev }: PutSchedule): Work<ScheduleResult> {
  const [row] = yield first(selectSchedule, toColumn(schedule.schedule_id));
  if (rev !== undefined && row === undefined) return { ok: false, conflict: "not_found" };
  if (row !== undefined && row["rev"] !== rev) return { ok: false, conflict: "changed" };
  if (schedule.source === "api" && (yield* isNameTaken(schedule))) return { ok: false, conflict: "name_taken" };
  yield* storeSchedule(
    tx,
    row === undefined ? schedule : keepTiming(toStoredSchedule(row), schedule),
    schedule.enabled,
    row,
  );
  return { ok: true, op: "put_schedule" };
}

export function* syncSchedules(tx: Transaction, op: SyncSchedules): Work<ScheduleResult> {
  let changed = 0;
  for (const schedule of op.schedules) {
    const [row] = yield first(selectSchedule, toColumn(schedule.schedule_id));
    if (row !== undefined && toCanonicalJson(JSON.parse(String(row["body"]))) === toCanonicalJson(schedule.definition))
      continue;
    changed += 1;
    const before = row === undefined ? null : toStoredSchedule(row);
    if (before === null) {
      yield* storeSchedule(tx, schedule, schedule.definition.enabled, undefined);
      continue;
    }
    const isUnchanged = before.definition.enabled === schedule.definition.enabled;
    yield* storeSchedule(
      tx,
      keepTiming(before, schedule),
      isUnchanged ? before.enabled : schedule.definition.enabled,
      row,
    );
  }
  const kept = new Set(op.schedules.map(({ schedule_id }) => schedule_id));
  for (const schedule_id of yield* findScheduleIds(op)) {
    if (kept.has(schedule_id)) continue;
    changed += 1;
    yield write(deleteRow, toColumn(schedule_id));
    tx.changes.schedules = true;
  }
  return { ok: true, op: "sync_schedules", changed };
}

export function* deleteSchedule(tx: Transaction, { schedule_id }: DeleteSchedule): Work<ScheduleResult> {
  const [deleted] = yield first(deleteRow, toColumn(schedule_id));
  if (deleted === undefined) return { ok: false, conflict: "not_found" };
  tx.changes.schedules = true;
  return { ok: true, op: "delete_schedule" };
}

function* isNameTaken({ schedule_id, agent_name, created_by, definition: { name } }: NewSchedule): Work<boolean> {
  const names = [agent_name, created_by, name, schedule_id].map((text) => toColumn(text));
  return (yield first(selectNamesake, ...names)).length > 0;
}

function* storeSchedule(tx: Transaction, schedule: NewSchedule, enabled: boolean, row: Row | undefined): Work<void> {
  const { schedule_id, agent_name, created_by, source, definition, anchor, due_at } = schedule;
  const id = toColumn(schedule_id);
  const names = [toColumn(agent_name), toColumn(definition.name)] as const;
  const times: SqlValue[] = [enabled ? 1 : 0, anchor, due_at];
  const body = JSON.stringify(definition);
  const now = tx.now.toISOString();
  if (row === undefined) yield write(insertSchedule, id, ...names, toColumn(created_by), source, body, ...times, now);
  else yield write(updateSchedule, id, ...names, body, ...times, now);
  tx.changes.schedules = true;
}

/** If the timing is unchanged, keeps the due time: slots may have been settled since the caller read the schedule. */
function keepTiming(before: NewSchedule, after: NewSchedule): NewSchedule {
  const [a, b] = [before.definition, after.definition];
  const isSame = a.cron === b.cron && a.every === b.every && a.timezone === b.timezone;
  return isSame ? { ...after, anchor: before.anchor, due_at: before.due_at } : after;
}

function* findScheduleIds({ agents, source }: SyncSchedules): Work<string[]> {
  const rows: Row[] = [];
  if (agents === null) rows.push(...(yield all(selectSchedulesOfSource, source)));
  else for (const name of agents) rows.push(...(yield all(selectSchedulesOfAgent, toColumn(name), source)));
  return rows.map((row) => fromColumn(String(row["schedule_id"])));
}
