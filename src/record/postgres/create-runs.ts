import type { Agent } from "../../model/agent.ts";
import type { CreateRun, Op, OpResult } from "../../model/store.ts";
import { bodyOf } from "../ops/create-run.ts";
import { claimableDemandOf } from "../ops/demands.ts";
import { runColumns, runValues } from "../ops/run-columns.ts";
import { capOf, keepAgent, sessionColumns, sessionRow, submittedEvent, worksInPlace } from "../ops/submit.ts";
import { all, type Row, type Work, write } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

/** A run that goes on from nothing: made of what it brings along. */
export type NewRun = CreateRun & { agent: Agent };

export function isNewRun(op: Op): op is NewRun {
  return (
    op.op === "create_run" &&
    op.agent !== undefined &&
    op.run.mode === "start" &&
    op.run.status === "pending" &&
    op.events.length === 0
  );
}

const columns = runColumns.join(", ");
const insertRuns = `
  with made as (
    insert into runs (${columns}) select ${columns} from json_populate_recordset(null::runs, ?::json)
    returning run_no, run_id, attempt, created_at),
  bodies as (
    insert into run_bodies (run_no, parameters, prompt, result_text, result_data)
    select run_no, body.parameters, body.prompt, body.result_text, body.result_data from made join json_to_recordset(?::json)
      as body (run_id text, parameters text, prompt text, result_text text, result_data text) on body.run_id = made.run_id)
  insert into events (run_no, seq, attempt, n, at, body)
  select run_no, 1, attempt, null, created_at, ? from made order by run_id`;
const sessionNames = sessionColumns.join(", ");
const insertSessions = `
  insert into sessions (${sessionNames}) select ${sessionNames} from json_populate_recordset(null::sessions, ?::json)
  on conflict (session_id) do update set run_count = sessions.run_count + 1, last_used_at = excluded.last_used_at`;
const insertKeys = `
  insert into idempotency select * from json_populate_recordset(null::idempotency, ?::json)
  on conflict (subject, key) do update set fingerprint = excluded.fingerprint, run_id = excluded.run_id, at = excluded.at`;
const selectTaken = `
  select run_id, null as subject, null as key from runs
  where run_id in (select run_id from json_populate_recordset(null::runs, ?1::json))
  union all
  select null, idempotency.subject, idempotency.key
  from json_populate_recordset(null::idempotency, ?2::json) asked join idempotency using (subject, key)`;

/**
 * Many new runs in four statements. null in place of a result: this one is there already, has a key that was used, or
 * goes with another one of the same call, and is for the operation itself to judge.
 */
export function* createRuns(tx: Transaction, ops: readonly NewRun[]): Work<(OpResult | null)[]> {
  const apart = apartFromEachOther(ops);
  const keys = keyRows(tx, apart);
  const taken = yield all(selectTaken, text(apart.map(({ run }) => ({ run_id: toColumn(run.run_id) }))), text(keys));
  const known = new Set(taken.map(takenBy));
  const fresh = apart.filter((op) => ![...namesOf(op)].some((name) => known.has(name)));
  if (fresh.length > 0) yield* insertAll(tx, fresh);
  const made = new Set(fresh);
  return ops.map((op) => (made.has(op) ? { ok: true, last_n: 0 } : null));
}

function* insertAll(tx: Transaction, ops: readonly NewRun[]): Work<void> {
  const places = new Map<string, { demandId: number; agentRevId: number }>();
  const rows: Row[] = [];
  const bodies: Row[] = [];
  const sessions: Row[] = [];
  for (const op of ops) {
    const { run, agent } = op;
    const kind = JSON.stringify([run.demands, capOf(op, agent), agent]);
    let place = places.get(kind);
    if (place === undefined) {
      place = {
        demandId: yield* claimableDemandOf(tx, run.demands, capOf(op, agent)),
        agentRevId: yield* keepAgent(agent),
      };
      places.set(kind, place);
    }
    tx.changed.claimable.push(run.demands);
    const values = runValues(run, {
      ...place,
      last: { n: 0, seq: 1 },
      timeoutSeconds: op.timeout_seconds ?? null,
      blockedBy: null,
      inPlace: worksInPlace(run, agent),
    });
    rows.push(Object.fromEntries(runColumns.map((name, index) => [name, values[index] ?? null])));
    if (run.session_id !== null) sessions.push(sessionRow(run, agent));
    const [parameters = null, prompt = null, result_text = null, result_data = null] = bodyOf(run);
    if ([parameters, prompt, result_text, result_data].some((value) => value !== null))
      bodies.push({ run_id: toColumn(run.run_id), parameters: parameters ?? "{}", prompt, result_text, result_data });
    tx.changed.runs.add(run.run_id);
  }
  yield write(insertRuns, text(rows), text(bodies), JSON.stringify(submittedEvent));
  if (sessions.length > 0) yield write(insertSessions, text(sessions));
  const keys = keyRows(tx, ops);
  if (keys.length > 0) yield write(insertKeys, text(keys));
}

function keyRows(tx: Transaction, ops: readonly NewRun[]): Row[] {
  const at = tx.now.toISOString();
  const rows: Row[] = [];
  for (const { idempotency, run } of ops) {
    if (idempotency === undefined) continue;
    const { subject, key, fingerprint } = idempotency;
    const names = { subject: toColumn(subject), key: toColumn(key), fingerprint: toColumn(fingerprint) };
    rows.push({ ...names, run_id: run.run_id, at });
  }
  return rows;
}

/** The first of those that share a run, a session or a key. */
function apartFromEachOther(ops: readonly NewRun[]): NewRun[] {
  const seen = new Set<string>();
  return ops.filter((op) => {
    const names = [...namesOf(op)];
    if (names.some((name) => seen.has(name))) return false;
    for (const name of names) seen.add(name);
    return true;
  });
}

function* namesOf({ run, idempotency }: NewRun): Iterable<string> {
  yield nameOf("run", toColumn(run.run_id));
  if (run.session_id !== null) yield nameOf("session", toColumn(run.session_id));
  if (idempotency !== undefined) yield nameOf("key", toColumn(idempotency.subject), toColumn(idempotency.key));
}

function takenBy({ run_id = null, subject = null, key = null }: Row): string {
  return run_id === null ? nameOf("key", subject, key) : nameOf("run", run_id);
}

function nameOf(...parts: unknown[]): string {
  return JSON.stringify(parts);
}

/** Texts are as they are stored, without what JSON or PostgreSQL could not take. */
function text(rows: readonly Row[]): string {
  return JSON.stringify(rows);
}
