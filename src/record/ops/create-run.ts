import { BugError } from "../../model/errors.ts";
import type { Run } from "../../model/run.ts";
import { isAssigned, hasEnded } from "../../model/states.ts";
import type { CreateRun, OpResult } from "../../model/store.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";
import { findOrCreateDemand } from "./demands.ts";
import { insertRun, toRunValues } from "../moves/run-columns.ts";
import { findRun, type StoredRun } from "../moves/stored-run.ts";
import { selectNewEvents, storeEvent, storeEvents } from "./store-events.ts";
import { isTriggerSettled, storeWebhookNames, settleTrigger } from "./settle-trigger.ts";
import { pinToSession } from "./place-run.ts";
import { isPortable } from "./save-session.ts";
import {
  findByIdempotencyKey,
  getSourceSession,
  isSessionMissing,
  storeSubmission,
  type SubmittedColumns,
} from "./store-submission.ts";

const insertBody = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data, sealed) values (?, ?, ?, ?, ?, ?)`;
const selectIdentity = `
  select agent_name, created_by, created_at, parameters, prompt
  from runs left join run_bodies using (run_no) where run_no = ?`;

/** With `waitsForSchedule`, the run is blocked until `releaseSchedule` releases it after the schedule's previous run. */
export function* createRun(tx: Transaction, op: CreateRun, waitsForSchedule = false): Work<OpResult> {
  const { run, events } = op;
  if (hasEnded(run.status))
    throw new BugError("a run cannot be created with a status in which it has ended; only finish_run ends a run");
  const repeatedResult = op.idempotency === undefined ? null : yield* findByIdempotencyKey(op.idempotency);
  if (repeatedResult !== null) return repeatedResult;
  const stored = yield* findRun(run.run_id);
  if (stored !== null) return yield* handleRepeat(stored, run);
  if (op.parent_attempt !== undefined && !(yield* isActive(op.parent_attempt)))
    return { ok: false, conflict: "fenced", last_n: 0 };
  if (selectNewEvents(events, 0)?.length !== events.length) return { ok: false, conflict: "gap", last_n: 0 };
  if (op.agent !== undefined && run.mode !== "start" && (yield* isSessionMissing(run)))
    return { ok: false, conflict: "not_found", last_n: 0 };

  if (op.settles !== undefined && (yield* isTriggerSettled(op.settles)))
    return { ok: false, conflict: "repeated", last_n: 0 };
  const submitted =
    op.agent === undefined
      ? yield* createLocalColumns(tx, run)
      : yield* storeSubmission(tx, op, op.agent, waitsForSchedule);
  const last = { n: events.length, seq: events.length + submitted.initialEvents.length };
  const [inserted] = yield first(insertRun, ...toRunValues(run, { ...submitted, last }));
  const position = {
    run_no: Number(inserted?.["run_no"]),
    run_id: run.run_id,
    attempt: run.attempt,
    last_n: 0,
    last_seq: 0,
    parent_run_id: run.parent_run_id === null ? null : toColumn(run.parent_run_id),
    created_at: toColumn(run.created_at),
  };
  if (op.agent !== undefined && submitted.blockedBy === null) yield* preferSessionRunner(tx, run, position.run_no);
  for (const event of submitted.initialEvents) yield* storeEvent(tx, position, null, run.created_at, event);
  yield* storeEvents(tx, position, events);
  if (op.webhooks !== undefined) yield* storeWebhookNames(position.run_no, op.webhooks);
  if (op.settles !== undefined) yield* settleTrigger(op.settles, run.run_id);
  const body = toBodyColumns(run);
  const { sealed = null } = op;
  if (sealed !== null || body.some((value) => value !== null))
    yield write(insertBody, position.run_no, body[0] ?? "{}", ...body.slice(1), sealed);
  return { ok: true, last_n: last.n };
}

function* isActive({ run_id, attempt }: NonNullable<CreateRun["parent_attempt"]>): Work<boolean> {
  const run = yield* findRun(run_id);
  return run !== null && run.attempt === attempt && isAssigned(run.status) && run.status !== "stopping";
}

/** A portable session can continue on any runner, but the run prefers the one that already has it. */
function* preferSessionRunner(tx: Transaction, run: Run, run_no: number): Work<void> {
  const from = getSourceSession(run);
  if (from === null || !(yield* isPortable(toColumn(from)))) return;
  tx.changes.claimable.push(yield* pinToSession(tx, run_no, toColumn(from)));
}

/** For a run that its creator executes itself (`drover exec`). Runners never claim it. */
function* createLocalColumns(tx: Transaction, run: Run): Work<SubmittedColumns> {
  return {
    demandId: yield* findOrCreateDemand(tx, run.demands),
    agentRevId: null,
    timeoutSeconds: null,
    blockedBy: null,
    inPlace: false,
    budgeted: false,
    chained: false,
    sealed: false,
    initialEvents: [],
  };
}

/** The values of parameters, prompt, result_text and result_data. null if there is nothing to store. */
export function toBodyColumns(run: Run): (string | null)[] {
  const parameters = JSON.stringify(run.parameters);
  return [
    parameters === "{}" ? null : parameters,
    toColumn(run.prompt),
    toColumn(run.result_text),
    run.result_data === null || run.result_data === undefined ? null : JSON.stringify(run.result_data),
  ];
}

/** A repeated request gets the same result. A different run with the same id is a conflict. */
function* handleRepeat(stored: StoredRun, run: Run): Work<OpResult> {
  const [row] = yield first(selectIdentity, stored.run_no);
  const isSame =
    row?.["agent_name"] === toColumn(run.agent_name) &&
    row["created_by"] === toColumn(run.created_by) &&
    row["created_at"] === toColumn(run.created_at) &&
    (row["prompt"] ?? null) === toColumn(run.prompt) &&
    toCanonicalJson(JSON.parse(String(row["parameters"] ?? "{}"))) === toCanonicalJson(run.parameters);
  if (isSame) return { ok: true, last_n: stored.last_n, repeated: true };
  return { ok: false, conflict: "exists", last_n: stored.last_n };
}
