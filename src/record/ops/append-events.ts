import type { NumberedEvent } from "../../model/event.ts";
import { hasEnded } from "../../model/states.ts";
import type { AppendEvents, OpResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { auditRefused, isFenced, type Write } from "./fence.ts";
import { replaceForgedEvents } from "./forged-events.ts";
import { bindSession } from "./bind-session.ts";
import { followEvents, move, updateRun } from "../moves/move.ts";
import { storeQuestions } from "../moves/questions.ts";
import { addUsage } from "../moves/usage.ts";
import { findWrittenRun, type StoredRun } from "../moves/stored-run.ts";
import { selectNewEvents, storeEvents } from "./store-events.ts";
import { storeFiles } from "./store-files.ts";

export function* appendEvents(tx: Transaction, op: AppendEvents): Work<OpResult> {
  const run = yield* findWrittenRun(op.run_id);
  if (run === null) return { ok: false, conflict: "not_found", last_n: 0 };
  if (isFenced(run, op)) return handleFenced(tx, run, op);
  const newEvents = selectNewEvents(op.events, run.last_n);
  if (newEvents?.length === 0) return { ok: true, last_n: run.last_n, repeated: true };
  if (hasEnded(run.status)) {
    auditRefused(tx, run, op);
    return { ok: false, conflict: "finished", last_n: run.last_n };
  }
  if (newEvents === null) return { ok: false, conflict: "gap", last_n: run.last_n };

  yield* recordEvents(tx, run, newEvents, op);
  return { ok: true, last_n: run.last_n };
}

/** Stores events that follow the last stored one, and applies their effects to the run. */
export function* recordEvents(
  tx: Transaction,
  run: StoredRun,
  newEvents: readonly NumberedEvent[],
  op: Write,
): Work<void> {
  const { to, ...options } = yield* applyEvents(tx, run, newEvents, op);
  if (to === run.status) yield* updateRun(run, options.columns);
  else yield* move(tx, run, to, options);
}

/** Stores the events that this attempt may report, with their files, questions and usage. Returns the run's next status. */
export function* applyEvents(
  tx: Transaction,
  run: StoredRun,
  reported: readonly NumberedEvent[],
  op: Write,
): Work<ReturnType<typeof followEvents>> {
  const accepted = yield* replaceForgedEvents(tx, run, reported, op);
  yield* storeEvents(tx, run, accepted);
  yield* storeFiles(run, accepted);
  yield* bindSession(run, accepted);
  const waitsFor = yield* storeQuestions(tx, run, accepted);
  const { columns, ...rest } = followEvents(run, accepted, waitsFor, tx.now);
  const usage = yield* addUsage(tx, run, accepted);
  return { ...rest, columns: { ...columns, ...usage, ...(waitsFor === undefined ? {} : { asked: run.asked }) } };
}

function handleFenced(tx: Transaction, run: StoredRun, op: AppendEvents): OpResult {
  // The runner gave the run back after storing all its events, so this is only a repeated report.
  if (
    (run.status === "pending" || run.status === "parked") &&
    run.given_back === op.attempt &&
    selectNewEvents(op.events, run.last_n)?.length === 0
  ) {
    return { ok: true, last_n: run.last_n, repeated: true };
  }
  auditRefused(tx, run, op);
  return { ok: false, conflict: "fenced", last_n: 0 };
}
