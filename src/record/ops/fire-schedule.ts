import type { ScheduleDefinition, SkipReason, StoredSchedule } from "../../model/schedule.ts";
import type { FireSchedule, ScheduleResult } from "../../model/schedule-ops.ts";
import { hasEnded, type RunStatus } from "../../model/states.ts";
import { all, first, type SqlValue, write, type Work } from "../query.ts";
import { toStoredSchedule } from "../reads/schedules.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { createRun } from "./create-run.ts";
import { stopRuns } from "./stop-runs.ts";

const selectSchedule = `
  select * from schedules where schedule_id = ?`;
const selectSlot = `
  select 1 from schedule_slots where schedule_id = ? and slot = ?`;
const selectStatus = `
  select status from runs where run_id = ?`;
const countQueued = `
  select count(*) as queued from schedule_slots where schedule_id = ? and waits_for is not null`;
const slotColumns = "schedule_id, slot, outcome, why, detail, manual, at, run_id, waits_for";
const advanceDue = `
  update schedules set due_at = ? where schedule_id = ?`;
const setLast = `
  update schedules set last_run_id = ?, session_id = ? where schedule_id = ?`;

/** Rows per insert statement. */
const slotsPerInsert = 100;
const maxQueued = 100;

/** What the overlap policy decides: skip the slot, or create a run that may have to wait for another one. */
type OverlapDecision = { skip: SkipReason; detail: string } | { waitsFor: string | null };

interface SlotRow {
  slot: string;
  outcome: "fired" | "skipped";
  why: SkipReason | null;
  detail: string | null;
  run_id: string | null;
  waits_for: string | null;
}

export function* fireSchedule(tx: Transaction, op: FireSchedule): Work<ScheduleResult> {
  const [row] = yield first(selectSchedule, toColumn(op.schedule_id));
  if (row === undefined) return { ok: false, conflict: "not_found" };
  const schedule = toStoredSchedule(row);
  if (op.due !== undefined && (schedule.rev !== op.due.rev || schedule.due_at !== op.due.at))
    return { ok: false, conflict: "changed" };
  const slotRow = yield* fireSlot(tx, op, schedule);
  if (slotRow === "session") return { ok: false, conflict: "session" };
  const skipped = op.skipped.map((skippedSlot): SlotRow => ({
    ...skippedSlot,
    outcome: "skipped",
    run_id: null,
    waits_for: null,
  }));
  let settled = 0;
  for (let from = 0; from < skipped.length; from += slotsPerInsert)
    settled += yield* insertSlots(op, skipped.slice(from, from + slotsPerInsert));
  if (slotRow !== null) settled += yield* insertSlots(op, [slotRow]);
  if (op.due !== undefined) yield write(advanceDue, op.due.next, toColumn(op.schedule_id));
  // Stop the previous run only now: its end releases the slot that waits for it, which has to be stored by then.
  if (typeof slotRow?.waits_for === "string" && schedule.definition.overlap === "cancel_previous")
    yield* stopRuns(tx, {
      op: "stop_runs",
      run_ids: [slotRow.waits_for],
      reason: "user",
      by: describeSchedule(schedule.definition),
    });
  tx.changes.schedules = true;
  return { ok: true, op: "fire_schedule", run_id: slotRow?.run_id ?? null, settled };
}

/** Returns null if the slot was settled before or there is none to fire. Stores nothing if the session no longer exists. */
function* fireSlot(tx: Transaction, op: FireSchedule, schedule: StoredSchedule): Work<SlotRow | "session" | null> {
  if (op.run === undefined) return null;
  const { slot, create } = op.run;
  if ((yield first(selectSlot, toColumn(op.schedule_id), slot)).length > 0) return null;
  const decision: OverlapDecision = op.due === undefined ? { waitsFor: null } : yield* applyOverlapPolicy(schedule);
  if ("skip" in decision)
    return { slot, outcome: "skipped", why: decision.skip, detail: decision.detail, run_id: null, waits_for: null };
  const created = yield* createRun(tx, create, decision.waitsFor !== null);
  if (!created.ok) return "session";
  const { run_id, session_id } = create.run;
  yield write(setLast, toColumn(run_id), toColumn(session_id), toColumn(op.schedule_id));
  return { slot, outcome: "fired", why: null, detail: null, run_id, waits_for: decision.waitsFor };
}

function* applyOverlapPolicy({ schedule_id, definition, last_run_id }: StoredSchedule): Work<OverlapDecision> {
  const { overlap } = definition;
  if (overlap === "allow" || last_run_id === null) return { waitsFor: null };
  const [row] = yield first(selectStatus, toColumn(last_run_id));
  // Every move writes a status of the model.
  const status = row?.["status"] as RunStatus | undefined;
  if (status === undefined || hasEnded(status)) return { waitsFor: null };
  if (overlap === "skip") return { skip: "overlap", detail: `Run ${last_run_id} is ${status}.` };
  if (overlap === "cancel_previous") return { waitsFor: last_run_id };
  const [count] = yield first(countQueued, toColumn(schedule_id));
  if (Number(count?.["queued"]) < maxQueued) return { waitsFor: last_run_id };
  return { skip: "queue_full", detail: `${maxQueued} runs are already queued behind run ${last_run_id}.` };
}

function describeSchedule({ name }: ScheduleDefinition): string {
  return `the schedule ${name}`;
}

function* insertSlots(op: FireSchedule, rows: readonly SlotRow[]): Work<number> {
  const values = rows.flatMap(({ slot, outcome, why, detail, run_id, waits_for }): SqlValue[] => [
    toColumn(op.schedule_id),
    slot,
    outcome,
    why,
    toColumn(detail),
    op.due === undefined ? 1 : 0,
    op.at,
    toColumn(run_id),
    toColumn(waits_for),
  ]);
  const placeholders = rows.map(() => "(?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ");
  const text = `insert into schedule_slots (${slotColumns}) values ${placeholders} on conflict do nothing returning slot`;
  return (yield all(text, ...values)).length;
}
