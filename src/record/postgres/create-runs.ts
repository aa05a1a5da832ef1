import type { Agent } from "../../model/agent.ts";
import type { Run } from "../../model/run.ts";
import type { CreateRun, Op, OpResult } from "../../model/store.ts";
import { bodyOf } from "../ops/create-run.ts";
import { findOrCreateClaimableDemand } from "../ops/demands.ts";
import { submittedEvent } from "../moves/move.ts";
import { runColumns, runFields, runValues } from "../moves/run-columns.ts";
import { capOf, storeAgentRev, sessionColumns, worksInPlace } from "../ops/submit.ts";
import { all, type Row, type Work, write } from "../query.ts";
import { isLargeValue } from "../../model/large-value.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { runWork, allSettled } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { listText } from "./list-text.ts";

/** A run that continues nothing, so it can be created from the operation alone. */
export type NewRun = CreateRun & { agent: Agent };

export function isNewRun(op: Op): op is NewRun {
  return (
    op.op === "create_run" &&
    op.agent !== undefined &&
    op.webhooks === undefined &&
    op.settles === undefined &&
    op.sealed === undefined &&
    op.inside === undefined &&
    op.run.mode === "start" &&
    op.run.status === submittedEvent.status &&
    op.events.length === 0 &&
    op.run.result_text === null &&
    op.run.result_data === null
  );
}

/** Runs that differ only in their own columns. */
interface Kind {
  first: NewRun;
  refs: RunRefs;
  runs: Run[];
}

interface RunRefs {
  demandId: number;
  agentRevId: number;
}

/** Runs per batch. While the database stores one batch, the next is encoded. */
const runsPerBatch = 200;

const ownColumns: ReadonlySet<string> = new Set(["run_id", "session_id", "created_at"]);
const sharedColumns = runColumns.filter((name) => !ownColumns.has(name));
const sharedFields = runFields.filter((name) => !ownColumns.has(name));

/** Inserts all runs of a kind: `v` holds each run's own columns, `k` the shared ones. Numbers start at ?1. */
const insertKind = `
  with v as materialized (
    select ?1::bigint + place - 1 as run_no, run_id, session_id, created_at, parameters, prompt
    from unnest(?2::text[], ?3::text[], ?4::text[], ?5::text[], ?6::text[])
      with ordinality as given (run_id, session_id, created_at, parameters, prompt, place)
  ), k as materialized (
    select * from json_populate_record(null::runs, ?7::json)
  ), its_rows as (
    insert into runs (run_no, ${[...ownColumns, ...sharedColumns].join(", ")})
    select v.run_no, ${[...ownColumns].map((name) => `v.${name}`).join(", ")}, ${sharedColumns.map((name) => `k.${name}`).join(", ")}
    from v, k
  ), its_bodies as (
    insert into run_bodies (run_no, parameters, prompt)
    select run_no, coalesce(parameters, '{}'), prompt from v where parameters is not null or prompt is not null
  ), its_events as (
    insert into events (run_no, seq, attempt, at, body, received_at)
    select v.run_no, 1, k.attempt, v.created_at, ?8, ?10::bigint from v, k
  )
  insert into sessions (${sessionColumns.join(", ")})
  select v.session_id, case when ?9::integer = 1 then v.session_id end, k.agent_name, k.created_by, k.project_dir,
    k.forked_from, k.fork_at_turn, 1, v.created_at, v.created_at
  from v, k where v.session_id is not null
  on conflict (session_id) do update set run_count = sessions.run_count + 1, last_used_at = excluded.last_used_at`;
const putKeys = `
  insert into idempotency (subject, key, fingerprint, run_id, at)
  select *, ?5 from unnest(?1::text[], ?2::text[], ?3::text[], ?4::text[])
  on conflict (subject, key) do update set fingerprint = excluded.fingerprint, run_id = excluded.run_id, at = excluded.at`;
/** What already exists, and the first of a range of new numbers. Nobody else takes numbers under the write lock. */
const selectTaken = `
  select run_id, null as subject, null as key, null::bigint as run_no from runs where run_id = any (?1::text[])
  union all
  select null, subject, key, null
  from unnest(?2::text[], ?3::text[]) as asked (subject, key) join idempotency using (subject, key)
  union all
  select null, null, null, setval('runs_run_no_seq', nextval('runs_run_no_seq') + ?4 - 1) - ?4 + 1`;

/**
 * Creates many runs with few statements. A null result means that the run already exists, has a used key, or shares something
 * with another run of the call; the regular operation has to handle it.
 */
export async function createRuns(
  connection: Connection,
  tx: Transaction,
  ops: readonly NewRun[],
): Promise<(OpResult | null)[]> {
  const distinct = withoutDuplicates(ops);
  const agentName = agentNames();
  // Pipelined to save round trips.
  const [taken, demandOf, revOf] = await allSettled([
    runWork(connection, findTaken(distinct)),
    runWork(connection, findDemands(tx, distinct, agentName)),
    runWork(connection, findRevs(distinct, agentName)),
  ]);
  const isTaken = (op: NewRun): boolean => namesOf(op).some((name) => taken.names.has(name));
  const fresh = taken.names.size === 0 ? distinct : distinct.filter((op) => !isTaken(op));
  const refsOf = (op: NewRun): RunRefs => ({ demandId: demandOf.get(op)!, agentRevId: revOf(op.agent) });
  let inserted = 0;
  for (const some of groupsOf(fresh)) {
    await runWork(connection, insertAll(tx, kindsOf(some, refsOf), taken.firstNumber + inserted));
    inserted += some.length;
  }
  await runWork(connection, insertKeys(tx, fresh));
  for (const { run } of fresh) {
    tx.changes.claimable.push(run.demands);
    tx.changes.runs.add(run.run_id);
  }
  const made = new Set(fresh);
  return ops.map((op) => (made.has(op) ? { ok: true, last_n: 0 } : null));
}

/** Groups of at most `runsPerBatch` runs. A run with large parameters gets its own group, because encoding several would block everyone. */
function groupsOf(ops: readonly NewRun[]): NewRun[][] {
  const groups: NewRun[][] = [];
  let isFull = true;
  for (const op of ops) {
    const isAlone = isLargeValue(op.run.parameters);
    if (isFull || isAlone) groups.push([]);
    const group = groups.at(-1)!;
    group.push(op);
    isFull = isAlone || group.length === runsPerBatch;
  }
  return groups;
}

function* findTaken(ops: readonly NewRun[]): Work<{ names: ReadonlySet<string>; firstNumber: number }> {
  const keys = keysOf(ops);
  const found = yield all(
    selectTaken,
    listText(ops.map(({ run }) => toColumn(run.run_id))),
    listText(keys.map(({ subject }) => subject)),
    listText(keys.map(({ key }) => key)),
    ops.length,
  );
  return {
    names: new Set(found.filter(({ run_no }) => run_no === null).map(takenBy)),
    firstNumber: Number(found.find(({ run_no }) => run_no !== null)?.["run_no"]),
  };
}

function* findDemands(
  tx: Transaction,
  ops: readonly NewRun[],
  agentName: (agent: Agent) => number,
): Work<ReadonlyMap<NewRun, number>> {
  const known = new Map<string, number>();
  const found = new Map<NewRun, number>();
  for (const op of ops) {
    const { run, agent, agent_runner_id } = op;
    const name = JSON.stringify([run.demands, run.agent_name, agent_runner_id, agentName(agent)]);
    const demandId = known.get(name) ?? (yield* findOrCreateClaimableDemand(tx, run.demands, capOf(op, agent)));
    known.set(name, demandId);
    found.set(op, demandId);
  }
  return found;
}

function* findRevs(ops: readonly NewRun[], agentName: (agent: Agent) => number): Work<(agent: Agent) => number> {
  const known = new Map<number, number>();
  for (const { agent } of ops) {
    const name = agentName(agent);
    if (!known.has(name)) known.set(name, yield* storeAgentRev(agent));
  }
  return (agent) => known.get(agentName(agent))!;
}

function kindsOf(ops: readonly NewRun[], refsOf: (op: NewRun) => RunRefs): Kind[] {
  const kinds: Kind[] = [];
  for (const op of ops) {
    const { demandId, agentRevId } = refsOf(op);
    // Search from the end: runs that arrive together are mostly of the same kind.
    const kind = kinds.findLast(
      ({ first, refs }) => refs.demandId === demandId && refs.agentRevId === agentRevId && areAlike(first, op),
    );
    if (kind !== undefined) kind.runs.push(op.run);
    else kinds.push({ first: op, refs: { demandId, agentRevId }, runs: [op.run] });
  }
  return kinds;
}

/** Compares runs with the same agent and demand. */
function areAlike(a: NewRun, b: NewRun): boolean {
  return a.timeout_seconds === b.timeout_seconds && sharedFields.every((name) => a.run[name] === b.run[name]);
}

function* insertAll(tx: Transaction, kinds: readonly Kind[], firstNumber: number): Work<void> {
  let next = firstNumber;
  for (const { first, refs, runs } of kinds) {
    const bodies = runs.map(bodyOf);
    yield write(
      insertKind,
      next,
      listText(runs.map(({ run_id }) => toColumn(run_id))),
      listText(runs.map(({ session_id }) => toColumn(session_id))),
      listText(runs.map(({ created_at }) => toColumn(created_at))),
      listText(bodies.map(([parameters = null]) => parameters)),
      listText(bodies.map(([, prompt = null]) => prompt)),
      JSON.stringify(sharedRow(first, refs)),
      JSON.stringify(submittedEvent),
      first.agent.type === "procedural" ? 1 : 0,
      tx.now.getTime(),
    );
    next += runs.length;
  }
}

/** Leaves out nulls, which are most columns of a new run. */
function sharedRow({ run, agent, timeout_seconds }: NewRun, refs: RunRefs): Row {
  const values = runValues(run, {
    ...refs,
    last: { n: 0, seq: 1 },
    timeoutSeconds: timeout_seconds ?? null,
    blockedBy: null,
    inPlace: worksInPlace(run, agent),
    budgeted: agent.budget?.per_day !== undefined,
    chained: typeof agent.on_finish === "object",
    sealed: false,
  });
  const row: Row = {};
  for (const [at, name] of runColumns.entries()) {
    const value = values[at] ?? null;
    if (value !== null && !ownColumns.has(name)) row[name] = value;
  }
  return row;
}

function* insertKeys(tx: Transaction, ops: readonly NewRun[]): Work<void> {
  const keys = keysOf(ops);
  if (keys.length === 0) return;
  const columns = (["subject", "key", "fingerprint", "run_id"] as const).map((name) => keys.map((key) => key[name]));
  yield write(putKeys, ...columns.map(listText), tx.now.toISOString());
}

/** A short name for each agent. Equal agents have the same name. */
function agentNames(): (agent: Agent) => number {
  const byText = new Map<string, number>();
  const byAgent = new Map<Agent, number>();
  return (agent) => {
    let name = byAgent.get(agent);
    if (name === undefined) {
      const text = JSON.stringify(agent);
      name = byText.get(text) ?? byText.size;
      byText.set(text, name);
      byAgent.set(agent, name);
    }
    return name;
  };
}

interface Key {
  subject: string;
  key: string;
  fingerprint: string;
  run_id: string;
}

function keysOf(ops: readonly NewRun[]): Key[] {
  return ops.flatMap(({ idempotency, run }): Key[] => {
    if (idempotency === undefined) return [];
    const { subject, key, fingerprint } = idempotency;
    return [
      {
        subject: toColumn(subject),
        key: toColumn(key),
        fingerprint: toColumn(fingerprint),
        run_id: toColumn(run.run_id),
      },
    ];
  });
}

/** Keeps only the first of those that share a run, a session or a key. */
function withoutDuplicates(ops: readonly NewRun[]): NewRun[] {
  const seen = new Set<string>();
  return ops.filter((op) => {
    const names = namesOf(op);
    if (names.some((name) => seen.has(name))) return false;
    for (const name of names) seen.add(name);
    return true;
  });
}

function namesOf({ run, idempotency }: NewRun): string[] {
  const names = [runName(toColumn(run.run_id))];
  if (run.session_id !== null) names.push(`session ${toColumn(run.session_id)}`);
  if (idempotency !== undefined) names.push(keyName(toColumn(idempotency.subject), toColumn(idempotency.key)));
  return names;
}

function takenBy({ run_id = null, subject = null, key = null }: Row): string {
  return run_id === null ? keyName(String(subject), String(key)) : runName(String(run_id));
}

function runName(run_id: string): string {
  return `run ${run_id}`;
}

function keyName(subject: string, key: string): string {
  return JSON.stringify([subject, key]);
}
