import type { Agent } from "../../model/agent.ts";
import type { Run } from "../../model/run.ts";
import type { CreateRun, Op, OpResult } from "../../model/store.ts";
import { toBodyColumns } from "../ops/create-run.ts";
import { findOrCreateClaimableDemand } from "../ops/demands.ts";
import { submittedEvent } from "./move.ts";
import { runColumns, runFields, toRunValues } from "./run-columns.ts";
import { buildCap, storeAgentRev, sessionColumns, worksInPlace } from "../ops/store-submission.ts";
import { all, type Row, type Work, write } from "../query.ts";
import { isLargeValue } from "../../model/large-value.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { runWork, waitForAll } from "../postgres/run-work.ts";
import type { Connection } from "../postgres/connection.ts";
import { toTextArray } from "../postgres/text-array.ts";

/** A run that continues nothing, so it can be created from the operation alone. */
export type NewRun = CreateRun & { agent: Agent };

export function isNewRun(op: Op): op is NewRun {
  return (
    op.op === "create_run" &&
    op.agent !== undefined &&
    op.webhooks === undefined &&
    op.settles === undefined &&
    op.sealed === undefined &&
    op.parent_attempt === undefined &&
    op.run.mode === "start" &&
    op.run.status === submittedEvent.status &&
    op.events.length === 0 &&
    op.run.result_text === null &&
    op.run.result_data === null
  );
}

/** Runs that differ only in `perRunColumns`, so that one statement can insert them. */
interface SimilarRuns {
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

const perRunColumns: ReadonlySet<string> = new Set(["run_id", "session_id", "created_at"]);
const sharedColumns = runColumns.filter((name) => !perRunColumns.has(name));
const sharedFields = runFields.filter((name) => !perRunColumns.has(name));

/** Inserts similar runs: `v` holds the columns that differ, `k` the shared ones. Run numbers start at ?1. */
const insertSimilar = `
  with v as materialized (
    select ?1::bigint + ordinal - 1 as run_no, run_id, session_id, created_at, parameters, prompt
    from unnest(?2::text[], ?3::text[], ?4::text[], ?5::text[], ?6::text[])
      with ordinality as input_rows (run_id, session_id, created_at, parameters, prompt, ordinal)
  ), k as materialized (
    select * from json_populate_record(null::runs, ?7::json)
  ), inserted_runs as (
    insert into runs (run_no, ${[...perRunColumns, ...sharedColumns].join(", ")})
    select v.run_no, ${[...perRunColumns].map((name) => `v.${name}`).join(", ")}, ${sharedColumns.map((name) => `k.${name}`).join(", ")}
    from v, k
  ), inserted_bodies as (
    insert into run_bodies (run_no, parameters, prompt)
    select run_no, coalesce(parameters, '{}'), prompt from v where parameters is not null or prompt is not null
  ), inserted_events as (
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
/** Selects the ids and keys that already exist, and reserves a range of run numbers. The write lock makes that safe. */
const selectTaken = `
  select run_id, null as subject, null as key, null::bigint as run_no from runs where run_id = any (?1::text[])
  union all
  select null, subject, key, null
  from unnest(?2::text[], ?3::text[]) as requested (subject, key) join idempotency using (subject, key)
  union all
  select null, null, null, setval('runs_run_no_seq', nextval('runs_run_no_seq') + ?4 - 1) - ?4 + 1`;

/**
 * Creates many runs with few statements, on PostgreSQL. A null result means that the run or its idempotency key already exists, or that
 * another run of this call has the same id, session or key. The regular operation has to handle such a run.
 */
export async function createRuns(
  connection: Connection,
  tx: Transaction,
  ops: readonly NewRun[],
): Promise<(OpResult | null)[]> {
  const distinctOps = removeDuplicates(ops);
  const getAgentNumber = createAgentNumbering();
  // These queries are pipelined to save round trips.
  const [taken, demandIds, getRev] = await waitForAll([
    runWork(connection, findTaken(distinctOps)),
    runWork(connection, findDemands(tx, distinctOps, getAgentNumber)),
    runWork(connection, findRevs(distinctOps, getAgentNumber)),
  ]);
  const isTaken = (op: NewRun): boolean => listUniqueKeys(op).some((key) => taken.names.has(key));
  const creatableOps = taken.names.size === 0 ? distinctOps : distinctOps.filter((op) => !isTaken(op));
  const getRefs = (op: NewRun): RunRefs => ({ demandId: demandIds.get(op)!, agentRevId: getRev(op.agent) });
  let inserted = 0;
  for (const batch of splitIntoBatches(creatableOps)) {
    await runWork(connection, insertAll(tx, groupSimilar(batch, getRefs), taken.firstNumber + inserted));
    inserted += batch.length;
  }
  await runWork(connection, insertKeys(tx, creatableOps));
  for (const { run } of creatableOps) {
    tx.changes.claimable.push(run.demands);
    tx.changes.runs.add(run.run_id);
  }
  const created = new Set(creatableOps);
  return ops.map((op) => (created.has(op) ? { ok: true, last_n: 0 } : null));
}

/** A run with large parameters gets a batch of its own, because encoding several at once would block the event loop. */
function splitIntoBatches(ops: readonly NewRun[]): NewRun[][] {
  const batches: NewRun[][] = [];
  let isFull = true;
  for (const op of ops) {
    const isAlone = isLargeValue(op.run.parameters);
    if (isFull || isAlone) batches.push([]);
    const batch = batches.at(-1)!;
    batch.push(op);
    isFull = isAlone || batch.length === runsPerBatch;
  }
  return batches;
}

function* findTaken(ops: readonly NewRun[]): Work<{ names: ReadonlySet<string>; firstNumber: number }> {
  const keys = toIdempotencyRows(ops);
  const rows = yield all(
    selectTaken,
    toTextArray(ops.map(({ run }) => toColumn(run.run_id))),
    toTextArray(keys.map(({ subject }) => subject)),
    toTextArray(keys.map(({ key }) => key)),
    ops.length,
  );
  return {
    names: new Set(rows.filter(({ run_no }) => run_no === null).map(toTakenKey)),
    firstNumber: Number(rows.find(({ run_no }) => run_no !== null)?.["run_no"]),
  };
}

function* findDemands(
  tx: Transaction,
  ops: readonly NewRun[],
  getAgentNumber: (agent: Agent) => number,
): Work<ReadonlyMap<NewRun, number>> {
  const demandIds = new Map<string, number>();
  const demandIdByOp = new Map<NewRun, number>();
  for (const op of ops) {
    const { run, agent, agent_runner_id } = op;
    const key = JSON.stringify([run.demands, run.agent_name, agent_runner_id, getAgentNumber(agent)]);
    const demandId = demandIds.get(key) ?? (yield* findOrCreateClaimableDemand(tx, run.demands, buildCap(op, agent)));
    demandIds.set(key, demandId);
    demandIdByOp.set(op, demandId);
  }
  return demandIdByOp;
}

function* findRevs(ops: readonly NewRun[], getAgentNumber: (agent: Agent) => number): Work<(agent: Agent) => number> {
  const revIds = new Map<number, number>();
  for (const { agent } of ops) {
    const key = getAgentNumber(agent);
    if (!revIds.has(key)) revIds.set(key, yield* storeAgentRev(agent));
  }
  return (agent) => revIds.get(getAgentNumber(agent))!;
}

function groupSimilar(ops: readonly NewRun[], getRefs: (op: NewRun) => RunRefs): SimilarRuns[] {
  const groups: SimilarRuns[] = [];
  for (const op of ops) {
    const { demandId, agentRevId } = getRefs(op);
    // Search from the end: runs that arrive together are mostly similar.
    const group = groups.findLast(
      ({ first, refs }) => refs.demandId === demandId && refs.agentRevId === agentRevId && areAlike(first, op),
    );
    if (group !== undefined) group.runs.push(op.run);
    else groups.push({ first: op, refs: { demandId, agentRevId }, runs: [op.run] });
  }
  return groups;
}

/** Compares runs with the same agent and demand. */
function areAlike(a: NewRun, b: NewRun): boolean {
  return a.timeout_seconds === b.timeout_seconds && sharedFields.every((name) => a.run[name] === b.run[name]);
}

function* insertAll(tx: Transaction, groups: readonly SimilarRuns[], firstNumber: number): Work<void> {
  let next = firstNumber;
  for (const { first, refs, runs } of groups) {
    const bodies = runs.map(toBodyColumns);
    yield write(
      insertSimilar,
      next,
      toTextArray(runs.map(({ run_id }) => toColumn(run_id))),
      toTextArray(runs.map(({ session_id }) => toColumn(session_id))),
      toTextArray(runs.map(({ created_at }) => toColumn(created_at))),
      toTextArray(bodies.map(([parameters = null]) => parameters)),
      toTextArray(bodies.map(([, prompt = null]) => prompt)),
      JSON.stringify(buildSharedRow(first, refs)),
      JSON.stringify(submittedEvent),
      first.agent.type === "procedural" ? 1 : 0,
      tx.now.getTime(),
    );
    next += runs.length;
  }
}

/** Omits nulls, which are most columns of a new run. */
function buildSharedRow({ run, agent, timeout_seconds }: NewRun, refs: RunRefs): Row {
  const values = toRunValues(run, {
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
  for (const [index, name] of runColumns.entries()) {
    const value = values[index] ?? null;
    if (value !== null && !perRunColumns.has(name)) row[name] = value;
  }
  return row;
}

function* insertKeys(tx: Transaction, ops: readonly NewRun[]): Work<void> {
  const keys = toIdempotencyRows(ops);
  if (keys.length === 0) return;
  const columns = (["subject", "key", "fingerprint", "run_id"] as const).map((name) => keys.map((key) => key[name]));
  yield write(putKeys, ...columns.map(toTextArray), tx.now.toISOString());
}

/** Returns a function that numbers agents. Equal agents get the same number. */
function createAgentNumbering(): (agent: Agent) => number {
  const byText = new Map<string, number>();
  const byAgent = new Map<Agent, number>();
  return (agent) => {
    let key = byAgent.get(agent);
    if (key === undefined) {
      const text = JSON.stringify(agent);
      key = byText.get(text) ?? byText.size;
      byText.set(text, key);
      byAgent.set(agent, key);
    }
    return key;
  };
}

interface IdempotencyRow {
  subject: string;
  key: string;
  fingerprint: string;
  run_id: string;
}

function toIdempotencyRows(ops: readonly NewRun[]): IdempotencyRow[] {
  return ops.flatMap(({ idempotency, run }): IdempotencyRow[] => {
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

/** Keeps only the first of several operations with the same run, session or idempotency key. */
function removeDuplicates(ops: readonly NewRun[]): NewRun[] {
  const seen = new Set<string>();
  return ops.filter((op) => {
    const keys = listUniqueKeys(op);
    if (keys.some((key) => seen.has(key))) return false;
    for (const key of keys) seen.add(key);
    return true;
  });
}

function listUniqueKeys({ run, idempotency }: NewRun): string[] {
  const keys = [toRunKey(toColumn(run.run_id))];
  if (run.session_id !== null) keys.push(`session ${toColumn(run.session_id)}`);
  if (idempotency !== undefined) keys.push(toIdempotencyKey(toColumn(idempotency.subject), toColumn(idempotency.key)));
  return keys;
}

function toTakenKey({ run_id = null, subject = null, key = null }: Row): string {
  return run_id === null ? toIdempotencyKey(String(subject), String(key)) : toRunKey(String(run_id));
}

function toRunKey(run_id: string): string {
  return `run ${run_id}`;
}

function toIdempotencyKey(subject: string, key: string): string {
  return JSON.stringify([subject, key]);
}
