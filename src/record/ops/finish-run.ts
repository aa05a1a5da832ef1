import { isTerminal } from "../../model/states.ts";
import type { FinishRun, OpResult } from "../../model/store.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { canonical } from "./canonical.ts";
import { columnsAfter, findRun, updateRun, type StoredRun } from "./run-state.ts";
import { newEvents, storeEvent, storeEvents } from "./store-events.ts";

const upsertResult = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data) values (?, '{}', null, ?, ?)
  on conflict (run_no) do update set result_text = excluded.result_text, result_data = excluded.result_data`;
const selectFinish = `
  select events.body, runs.summary, runs.isolation
  from runs join events on events.run_no = runs.run_no and events.seq = runs.last_seq
  where runs.run_no = ?`;

/** From any state that is not final: whether this attempt may still speak is what `attempt` decides. */
export function finishRun(tx: Transaction, op: FinishRun): OpResult {
  const run = findRun(tx, op.run_id);
  if (run === null) return { ok: false, conflict: "not_found", last_n: 0 };
  if (run.attempt !== op.attempt) return { ok: false, conflict: "fenced", last_n: 0 };
  if (isTerminal(run.status)) return answerAgain(tx, run, op);
  const fresh = newEvents(op.events, run.last_n);
  if (fresh === null) return { ok: false, conflict: "gap", last_n: run.last_n };

  storeEvents(tx, run, fresh);
  storeEvent(tx, run, null, op.at, op.result);
  updateRun(tx, run.run_no, {
    ...columnsAfter(run, fresh),
    status: op.result.status,
    reason: op.result.reason,
    error: toColumn(op.result.error),
    exit_code: op.result.exit_code,
    waiting_for: null,
    ...(op.summary === undefined ? {} : { summary: toColumn(op.summary) }),
    isolation: op.isolation,
    finished_at: toColumn(op.at),
  });
  storeResult(tx, run.run_no, op.result);
  return { ok: true, last_n: run.last_n };
}

function storeResult(tx: Transaction, run_no: number, { result_text, result_data }: FinishRun["result"]): void {
  const data = result_data === null || result_data === undefined ? null : JSON.stringify(result_data);
  if (result_text !== null || data !== null) tx.sql(upsertResult).run(run_no, toColumn(result_text), data);
}

function answerAgain(tx: Transaction, run: StoredRun, op: FinishRun): OpResult {
  const row = tx.sql(selectFinish).get(run.run_no);
  const same =
    canonical(JSON.parse(String(row?.["body"]))) === canonical(op.result) &&
    (op.summary === undefined || row?.["summary"] === toColumn(op.summary)) &&
    row?.["isolation"] === op.isolation;
  if (same) return { ok: true, last_n: run.last_n, repeated: true };
  return { ok: false, conflict: "finished", last_n: run.last_n };
}
