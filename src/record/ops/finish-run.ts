import { isTerminal } from "../../model/states.ts";
import type { FinishRun, OpResult } from "../../model/store.ts";
import { first, write, type SqlValue, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { bindSession } from "./bind-session.ts";
import { canonical } from "./canonical.ts";
import { endExecutions } from "./end-executions.ts";
import { auditRefused, isFenced } from "./fence.ts";
import { freeCap, freeDirectory, freeSession } from "./freed.ts";
import { attemptsLeft, end, requeue } from "./give-back.ts";
import { columnsAfter, findEnding, updateRun, type StoredRun } from "./run-state.ts";
import { newEvents, storeEvent, storeEvents } from "./store-events.ts";
import { storeFiles } from "./store-files.ts";

const upsertResult = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data) values (?, '{}', null, ?, ?)
  on conflict (run_no) do update set result_text = excluded.result_text, result_data = excluded.result_data`;
const selectFinish = `
  select events.body, runs.summary, runs.isolation
  from runs join events on events.run_no = runs.run_no and events.seq = runs.last_seq
  where runs.run_no = ?`;

/** From any state that is not final: whether this attempt may still speak is what `attempt` decides. */
export function* finishRun(tx: Transaction, op: FinishRun): Work<OpResult> {
  const run = yield* findEnding(op.run_id);
  if (run === null) return { ok: false, conflict: "not_found", last_n: 0 };
  if (isFenced(run, op)) return refused(tx, run, op);
  if (isTerminal(run.status)) return yield* answerAgain(tx, run, op);
  const fresh = newEvents(op.events, run.last_n);
  if (fresh === null || (op.last_n ?? 0) > (fresh.at(-1)?.n ?? run.last_n))
    return { ok: false, conflict: "gap", last_n: run.last_n };

  yield* storeEvents(tx, run, fresh);
  yield* storeFiles(run, fresh);
  yield* bindSession(run, fresh);
  const columns = columnsAfter(run, fresh);
  if (op.give_back === undefined) yield* endWith(tx, run, op, columns);
  else yield* giveBack(tx, run, op, op.give_back, columns);
  return { ok: true, last_n: run.last_n };
}

function* endWith(tx: Transaction, run: StoredRun, op: FinishRun, columns: Record<string, SqlValue>): Work<void> {
  yield* storeEvent(tx, run, null, op.at, op.result);
  yield* updateRun(run.run_no, {
    ...columns,
    last_seq: run.last_seq,
    status: op.result.status,
    reason: op.result.reason,
    error: toColumn(op.result.error),
    exit_code: op.result.exit_code,
    waiting_for: null,
    ...(op.summary === undefined ? {} : { summary: toColumn(op.summary) }),
    ...(op.runner === undefined ? { isolation: op.isolation } : {}),
    finished_at: toColumn(op.at),
  });
  (tx.changed.ended ??= []).push({ run_id: run.run_id, status: op.result.status, reason: op.result.reason });
  yield* storeResult(run.run_no, op.result);
  yield* freeCap(tx, run);
  yield* freeDirectory(tx, run);
  yield* freeSession(tx, run);
}

/** Of a run its runner could not bring to an end. */
function* giveBack(
  tx: Transaction,
  run: StoredRun,
  op: FinishRun,
  how: NonNullable<FinishRun["give_back"]>,
  columns: Record<string, SqlValue>,
): Work<void> {
  yield* updateRun(run.run_no, { ...columns, given_back: run.attempt });
  const reason = op.result.error ?? how;
  if (run.status === "stopping") yield* end(tx, run, "cancelled", null, op.result.error);
  else if (how === "at_no_cost") yield* requeue(tx, run, reason);
  else if (how === "parked") yield* park(tx, run, reason);
  else if (yield* attemptsLeft(run, run.failures + 1)) yield* requeue(tx, run, reason, run.failures + 1);
  else yield* endWith(tx, run, op, { failures: run.failures + 1 });
}

function* park(tx: Transaction, run: StoredRun, reason: string): Work<void> {
  yield* endExecutions(tx, run, reason);
  yield* storeEvent(tx, run, null, tx.now.toISOString(), { type: "status", status: "parked", reason });
  yield* updateRun(run.run_no, {
    last_seq: run.last_seq,
    status: "parked",
    waiting_for: toColumn(reason),
    claim_no: null,
  });
  yield* freeCap(tx, run);
  yield* freeDirectory(tx, run);
}

function refused(tx: Transaction, run: StoredRun, op: FinishRun): OpResult {
  // The same finish again, after it put the run back.
  if (run.given_back === op.attempt && op.give_back !== undefined)
    return { ok: true, last_n: run.last_n, repeated: true };
  auditRefused(tx, run, op);
  return { ok: false, conflict: "fenced", last_n: 0 };
}

function* storeResult(run_no: number, { result_text, result_data }: FinishRun["result"]): Work<void> {
  const data = result_data === null || result_data === undefined ? null : JSON.stringify(result_data);
  if (result_text !== null || data !== null) yield write(upsertResult, run_no, toColumn(result_text), data);
}

function* answerAgain(tx: Transaction, run: StoredRun, op: FinishRun): Work<OpResult> {
  const [row] = yield first(selectFinish, run.run_no);
  const same =
    canonical(JSON.parse(String(row?.["body"]))) === canonical(op.result) &&
    (op.summary === undefined || row?.["summary"] === toColumn(op.summary)) &&
    (op.runner !== undefined || row?.["isolation"] === op.isolation);
  if (same || (op.give_back !== undefined && run.given_back === op.attempt))
    return { ok: true, last_n: run.last_n, repeated: true };
  auditRefused(tx, run, op);
  return { ok: false, conflict: "finished", last_n: run.last_n };
}
