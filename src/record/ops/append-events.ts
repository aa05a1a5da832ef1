import type { NumberedEvent } from "../../model/event.ts";
import { isTerminal } from "../../model/states.ts";
import type { AppendEvents, OpResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { auditRefused, isFenced, type Write } from "./fence.ts";
import { replaceForgedEvents } from "./forged-events.ts";
import { bindSession } from "./bind-session.ts";
import { followEvents, move, updateRun } from "../moves/move.ts";
import { storeQuestions } from "../moves/questions.ts";
import { addUsage } from "../moves/usage.ts";
import { findWritten, type StoredRun } from "../moves/stored-run.ts";
import { newEvents, storeEvents } from "./store-events.ts";
import { storeFiles } from "./store-files.ts";

export function* appendEvents(tx: Transaction, op: AppendEvents): Work<OpResult> {
  const run = yield* findWritten(op.run_id);
  if (run === null) return { ok: false, conflict: "not_found", last_n: 0 };
  if (isFenced(run, op)) return refused(tx, run, op);
  const fresh = newEvents(op.events, run.last_n);
  if (fresh?.length === 0) return { ok: true, last_n: run.last_n, repeated: true };
  if (isTerminal(run.status)) {
    auditRefused(tx, run, op);
    return { ok: false, conflict: "finished", last_n: run.last_n };
  }
  if (fresh === null) return { ok: false, conflict: "gap", last_n: run.last_n };

  yield* recordEvents(tx, run, fresh, op);
  return { ok: true, last_n: run.last_n };
}

/** Stores events that follow the last stored one, and applies their effects to the run. */
export function* recordEvents(tx: Transaction, run: StoredRun, fresh: readonly NumberedEvent[], op: Write): Work<void> {
  const { to, ...how } = yield* applyEvents(tx, run, fresh, op);
  if (to === run.status) yield* updateRun(run, how.columns);
  else yield* move(tx, run, to, how);
}

/** Stores the events that this attempt may report, with their files, questions and usage. Returns the run's next status. */
export function* applyEvents(
  tx: Transaction,
  run: StoredRun,
  reported: readonly NumberedEvent[],
  op: Write,
): Work<ReturnType<typeof followEvents>> {
  const fresh = yield* replaceForgedEvents(tx, run, reported, op);
  yield* storeEvents(tx, run, fresh);
  yield* storeFiles(run, fresh);
  yield* bindSession(run, fresh);
  const waitsFor = yield* storeQuestions(tx, run, fresh);
  const { columns, ...how } = followEvents(run, fresh, waitsFor, tx.now);
  const used = yield* addUsage(tx, run, fresh);
  return { ...how, columns: { ...columns, ...used, ...(waitsFor === undefined ? {} : { asked: run.asked }) } };
}

function refused(tx: Transaction, run: StoredRun, op: AppendEvents): OpResult {
  // A runner that gave the run back had stored all its events first, so a repeated report is harmless.
  if (
    (run.status === "pending" || run.status === "parked") &&
    run.given_back === op.attempt &&
    newEvents(op.events, run.last_n)?.length === 0
  ) {
    return { ok: true, last_n: run.last_n, repeated: true };
  }
  auditRefused(tx, run, op);
  return { ok: false, conflict: "fenced", last_n: 0 };
}
