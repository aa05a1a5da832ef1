import type { Agent } from "../../model/agent.ts";
import type { CreateRun, Op, OpResult } from "../../model/store.ts";
import { bodyOf } from "../ops/create-run.ts";
import { claimableDemandOf } from "../ops/demands.ts";
import { runColumns, runValues } from "../ops/run-columns.ts";
import { capOf, keepAgent, sessionColumns, sessionRow, submittedEvent, worksInPlace } from "../ops/submit.ts";
import { all, type Row, type SqlValue, type Work, write } from "../query.ts";
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

/** Each row with the number it has been given before: nothing has to be joined. */
const runNames = ["run_no", ...runColumns].join(", ");
const insertRuns = `
  insert into runs (${runNames}) select ${runNames} from json_populate_recordset(null::runs, ?::json)`;
const insertBodies = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data)
  select run_no, parameters, prompt, result_text, result_data from json_populate_recordset(null::run_bodies, ?::json)`;
const insertEvents = `
  insert into events (run_no, seq, attempt, at, body)
  select run_no, 1, attempt, at, ? from json_populate_recordset(null::events, ?::json)`;
const sessionNames = sessionColumns.join(", ");
const insertSessions = `
  insert into sessions (${sessionNames}) select ${sessionNames} from json_populate_recordset(null::sessions, ?::json)
  on conflict (session_id) do update set run_count = sessions.run_count + 1, last_used_at = excluded.last_used_at`;
const insertKeys = `
  insert into idempotency select * from json_populate_recordset(null::idempotency, ?::json)
  on conflict (subject, key) do update set fingerprint = excluded.fingerprint, run_id = excluded.run_id, at = excluded.at`;
/** What is there already, and the numbers for what is not. */
const selectTaken = `
  select run_id, null as subject, null as key, null::bigint as run_no from runs
  where run_id in (select run_id from json_populate_recordset(null::runs, ?1::json))
  union all
  select null, idempotency.subject, idempotency.key, null
  from json_populate_recordset(null::idempotency, ?2::json) asked join idempotency using (subject, key)
  union all
  select null, null, null, nextval(pg_get_serial_sequence('runs', 'run_no')) from generate_series(1, ?3::integer)`;

/**
 * Many new runs in a few statements. null in place of a result: this one is there already, has a key that was used, or
 * goes with another one of the same call, and is for the operation itself to judge.
 */
export function* createRuns(tx: Transaction, ops: readonly NewRun[]): Work<(OpResult | null)[]> {
  const apart = apartFromEachOther(ops);
  const keys = keyRows(tx, apart);
  const ids = apart.map(({ run }) => ({ run_id: toColumn(run.run_id) }));
  const found = yield all(selectTaken, text(ids), text(keys), apart.length);
  const numbers = found.flatMap(({ run_no = null }) => (run_no === null ? [] : [Number(run_no)]));
  const known = new Set(found.filter(({ run_no }) => run_no === null).map(takenBy));
  const fresh = apart.filter((op) => ![...namesOf(op)].some((name) => known.has(name)));
  if (fresh.length > 0) yield* insertAll(tx, fresh, numbers);
  const made = new Set(fresh);
  return ops.map((op) => (made.has(op) ? { ok: true, last_n: 0 } : null));
}

function* insertAll(tx: Transaction, ops: readonly NewRun[], numbers: readonly number[]): Work<void> {
  const places = new Map<string, { demandId: number; agentRevId: number }>();
  const rows: Row[] = [];
  const bodies: Row[] = [];
  const sessions: Row[] = [];
  const events: Row[] = [];
  for (const [at, op] of ops.entries()) {
    const { run, agent } = op;
    const run_no = numbers[at] ?? null;
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
    rows.push(named(run_no, values));
    events.push({ run_no, attempt: run.attempt, at: toColumn(run.created_at) });
    if (run.session_id !== null) sessions.push(sessionRow(run, agent));
    const [parameters = null, prompt = null, result_text = null, result_data = null] = bodyOf(run);
    if ([parameters, prompt, result_text, result_data].some((value) => value !== null))
      bodies.push({ run_no, parameters: parameters ?? "{}", prompt, result_text, result_data });
    tx.changed.runs.add(run.run_id);
  }
  yield write(insertRuns, text(rows));
  if (bodies.length > 0) yield write(insertBodies, text(bodies));
  yield write(insertEvents, JSON.stringify(submittedEvent), text(events));
  if (sessions.length > 0) yield write(insertSessions, text(sessions));
  const keys = keyRows(tx, ops);
  if (keys.length > 0) yield write(insertKeys, text(keys));
}

/** What is not there is null: most of a run that has not begun. */
function named(run_no: number | null, values: readonly SqlValue[]): Row {
  const row: Row = { run_no };
  for (const [index, name] of runColumns.entries()) {
    const value = values[index] ?? null;
    if (value !== null) row[name] = value;
  }
  return row;
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
