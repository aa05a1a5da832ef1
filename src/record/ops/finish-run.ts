import { hasEnded, type RunStatus } from "../../model/states.ts";
import type { FinishRun, OpResult } from "../../model/store.ts";
import { first, type SqlValue, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";
import { auditRefused, isFenced } from "./fence.ts";
import { readLossCounters, returnToPending } from "../moves/lose-run.ts";
import { move, type Move } from "../moves/move.ts";
import { findEndingRun, type EndingRun, type StoredRun } from "../moves/stored-run.ts";
import { applyEvents } from "./append-events.ts";
import { parkRun } from "./park-run.ts";
import { selectNewEvents } from "./store-events.ts";

const selectFinish = `
  select events.body, runs.summary, runs.isolation
  from runs join events on events.run_no = runs.run_no and events.seq = runs.last_seq
  where runs.run_no = ?`;

/** Accepted unless the run has ended, provided that the attempt may still write. */
export function* finishRun(tx: Transaction, op: FinishRun): Work<OpResult> {
  const run = yield* findEndingRun(op.run_id);
  if (run === null) return { ok: false, conflict: "not_found", last_n: 0 };
  if (isFenced(run, op)) return handleFenced(tx, run, op);
  if (hasEnded(run.status)) return yield* handleRepeat(tx, run, op);
  const newEvents = selectNewEvents(op.events, run.last_n);
  if (newEvents === null || (op.last_n ?? 0) > (newEvents.at(-1)?.n ?? run.last_n))
    return { ok: false, conflict: "gap", last_n: run.last_n };

  const { to: fromStatus, columns } = yield* applyEvents(tx, run, newEvents, op);
  if (op.give_back !== undefined) yield* takeBack(tx, run, op, columns);
  else if (op.parked !== undefined) yield* parkOrEnd(tx, run, op, { fromStatus, columns });
  else yield* endWithResult(tx, run, op, { fromStatus, columns });
  return { ok: true, last_n: run.last_n };
}

/** Parks a run that can continue later, or ends it. */
function* parkOrEnd(
  tx: Transaction,
  run: EndingRun,
  op: FinishRun,
  how: { fromStatus: RunStatus; columns: Record<string, SqlValue> },
): Work<void> {
  if (run.status === "stopping") return yield* cancel(tx, run, op, { ...how.columns, given_back: run.attempt });
  const refusal = yield* parkRun(tx, run, op, how);
  if (refusal !== null) yield* endWithResult(tx, run, { ...op, result: refusal }, how);
}

/** Requeues a run that its runner could not finish, or ends it if it has no attempts left. */
function* takeBack(tx: Transaction, run: StoredRun, op: FinishRun, columns: Record<string, SqlValue>): Work<void> {
  const reason = op.result.error ?? String(op.give_back);
  const returnedColumns = { ...columns, given_back: run.attempt };
  if (run.status === "stopping") return yield* cancel(tx, run, op, returnedColumns);
  const counters = op.give_back === "at_no_cost" ? {} : yield* readLossCounters(run);
  if (counters === null)
    yield* endWithResult(tx, run, op, { columns: { ...returnedColumns, failures: run.failures + 1 } });
  else yield* returnToPending(tx, run, reason, { ...returnedColumns, ...counters });
}

function* cancel(tx: Transaction, run: StoredRun, op: FinishRun, columns: Record<string, SqlValue>): Work<void> {
  const empty = { reason: null, result_text: null, result_data: null };
  yield* move(tx, run, "cancelled", { cause: { ...op.result, status: "cancelled", ...empty }, columns });
}

function* endWithResult(
  tx: Transaction,
  run: StoredRun,
  op: FinishRun,
  how: Pick<Move, "fromStatus" | "columns">,
): Work<void> {
  const columns = {
    ...how.columns,
    ...(op.summary === undefined ? {} : { summary: toColumn(op.summary) }),
    ...(op.runner === undefined ? { isolation: op.isolation } : {}),
  };
  yield* move(tx, run, op.result.status, { ...how, cause: op.result, at: op.at, columns, executionsEnded: true });
}

function handleFenced(tx: Transaction, run: StoredRun, op: FinishRun): OpResult {
  // A repeated report: this attempt has already given the run back.
  if (run.given_back === op.attempt && (op.give_back !== undefined || op.parked !== undefined))
    return { ok: true, last_n: run.last_n, repeated: true };
  auditRefused(tx, run, op);
  return { ok: false, conflict: "fenced", last_n: 0 };
}

function* handleRepeat(tx: Transaction, run: StoredRun, op: FinishRun): Work<OpResult> {
  const [row] = yield first(selectFinish, run.run_no);
  const isSame =
    toCanonicalJson(JSON.parse(String(row?.["body"]))) === toCanonicalJson(op.result) &&
    (op.summary === undefined || row?.["summary"] === toColumn(op.summary)) &&
    (op.runner !== undefined || row?.["isolation"] === op.isolation);
  if (isSame || ((op.give_back !== undefined || op.parked !== undefined) && run.given_back === op.attempt))
    return { ok: true, last_n: run.last_n, repeated: true };
  auditRefused(tx, run, op);
  return { ok: false, conflict: "finished", last_n: run.last_n };
}
