import type { Agent } from "../../model/agent.ts";
import { BugError } from "../../model/errors.ts";
import type { RunEvent } from "../../model/event.ts";
import type { Run } from "../../model/run.ts";
import type { CreateRun, OpResult } from "../../model/store.ts";
import { sha256 } from "../../model/hmac.ts";
import { first, type SqlValue, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";
import { type Cap, findOrCreateClaimableDemand } from "./demands.ts";
import { submittedEvent } from "../moves/move.ts";
import type { HiddenColumns } from "../moves/run-columns.ts";
import { findUnknownWebhooks } from "./settle-trigger.ts";
import { sessionExists, isSessionBusy } from "./sessions.ts";

export interface SubmittedColumns extends Omit<HiddenColumns, "last"> {
  /** Events that the store itself puts at the start of the log. */
  initialEvents: RunEvent[];
}

export const sessionColumns = [
  "session_id",
  "executor_session_id",
  "agent_name",
  "created_by",
  "project_dir",
  "forked_from",
  "fork_at_turn",
  "run_count",
  "created_at",
  "last_used_at",
] as const;

const selectKey = `
  select fingerprint, run_id from idempotency where subject = ? and key = ?
    and exists (select 1 from runs where runs.run_id = idempotency.run_id)`;
const insertKey = `
  insert into idempotency (subject, key, fingerprint, run_id, at) values (?, ?, ?, ?, ?)
  on conflict (subject, key) do update set fingerprint = excluded.fingerprint, run_id = excluded.run_id, at = excluded.at`;
const selectRev = `
  select agent_rev_id from agent_revs where hash = ?`;
const insertRev = `
  insert into agent_revs (hash, max_attempts, type, body) values (?, ?, ?, ?) returning agent_rev_id`;
const insertSession = `
  insert into sessions (${sessionColumns.join(", ")}) values (${sessionColumns.map(() => "?").join(", ")})
  on conflict (session_id) do update set run_count = sessions.run_count + 1, last_used_at = excluded.last_used_at`;

/**
 * Finds the run of an earlier request with this key, or returns a conflict if that request was different. A key whose run
 * was deleted does not count.
 */
export function* findByIdempotencyKey({
  subject,
  key,
  fingerprint,
}: NonNullable<CreateRun["idempotency"]>): Work<OpResult | null> {
  const [row] = yield first(selectKey, toColumn(subject), toColumn(key));
  if (row === undefined) return null;
  if (row["fingerprint"] !== toColumn(fingerprint)) return { ok: false, conflict: "idempotency", last_n: 0 };
  return { ok: true, last_n: 0, repeated: true, run_id: String(row["run_id"]) };
}

/** Stores everything a run needs before it can be claimed: agent, session, demand and idempotency key. */
export function* storeSubmission(
  tx: Transaction,
  op: CreateRun,
  agent: Agent,
  waitsForSchedule: boolean,
): Work<SubmittedColumns> {
  const { run } = op;
  if (run.status !== submittedEvent.status) throw new BugError("a submitted run must be created as pending");
  const blockedBy = (yield* storeSession(run, agent)) ?? (waitsForSchedule ? "schedule" : null);
  if (op.idempotency !== undefined) {
    const { subject, key, fingerprint } = op.idempotency;
    yield write(insertKey, toColumn(subject), toColumn(key), toColumn(fingerprint), run.run_id, tx.now.toISOString());
  }
  if (blockedBy === null) tx.changes.claimable.push(run.demands);
  return {
    demandId: yield* findOrCreateClaimableDemand(tx, run.demands, buildCap(op, agent)),
    agentRevId: yield* storeAgentRev(agent),
    timeoutSeconds: op.timeout_seconds ?? null,
    blockedBy,
    inPlace: worksInPlace(run, agent),
    budgeted: agent.budget?.per_day !== undefined,
    chained: typeof agent.on_finish === "object",
    sealed: op.sealed !== undefined,
    initialEvents: [submittedEvent, ...(yield* findUnknownWebhooks(op.webhooks ?? []))],
  };
}

export function buildCap({ run, agent_runner_id }: CreateRun, { max_concurrent }: Agent): Cap | null {
  if (max_concurrent === undefined) return null;
  return { agent_name: run.agent_name, runner_id: agent_runner_id ?? null, max: max_concurrent };
}

/** The session may have been deleted since the run was requested. */
export function* isSessionMissing(run: Run): Work<boolean> {
  const from = getSourceSession(run);
  return from !== null && !(yield* sessionExists(toColumn(from)));
}

/** The session whose history the run continues, if any. */
export function getSourceSession({ mode, session_id, forked_from }: Run): string | null {
  return { start: null, resume: session_id, fork: forked_from }[mode];
}

/** Whether the run needs exclusive use of an existing directory. Procedural runs never do: they share it. */
export function worksInPlace({ project_dir }: Run, { type, workspace }: Agent): boolean {
  return type === "autonomous" && (workspace === "in_place" || (project_dir !== null && workspace !== "scratch"));
}

/** Stores each distinct agent definition once, however many runs use it. */
export function* storeAgentRev(agent: Agent): Work<number> {
  const hash = agentHashes.get(agent) ?? hashAgent(agent);
  const [existing] = yield first(selectRev, hash);
  if (existing !== undefined) return Number(existing["agent_rev_id"]);
  const [inserted] = yield first(insertRev, hash, agent.max_attempts, agent.type, toCanonicalJson(agent));
  return Number(inserted?.["agent_rev_id"]);
}

/** Parsed definitions never change, and most runs share one. Each is hashed only once. */
const agentHashes = new WeakMap<Agent, Uint8Array>();

function hashAgent(agent: Agent): Uint8Array {
  const hash = sha256(Buffer.from(toCanonicalJson(agent)));
  agentHashes.set(agent, hash);
  return hash;
}

/**
 * Stores the session and returns what blocks the run, if anything. A session has one active run at a time. Another run, or
 * a fork, which would copy a state that is still changing, is blocked until the active run has ended.
 */
function* storeSession(run: Run, agent: Agent): Work<"session" | null> {
  if (run.session_id === null) return null;
  const from = getSourceSession(run);
  const isBusy = from !== null && (yield* isSessionBusy(toColumn(from)));
  yield write(insertSession, ...sessionColumns.map((name) => buildSessionRow(run, agent)[name]));
  return isBusy ? "session" : null;
}

/** The session row for the first run of a session. */
export function buildSessionRow(run: Run, agent: Agent): Record<(typeof sessionColumns)[number], SqlValue> {
  const session_id = toColumn(run.session_id);
  const created_at = toColumn(run.created_at);
  return {
    session_id,
    // Equal ids mark a procedural session (see isProcedural), which cannot be continued.
    executor_session_id: agent.type === "procedural" ? session_id : null,
    agent_name: toColumn(run.agent_name),
    created_by: toColumn(run.created_by),
    project_dir: toColumn(run.project_dir),
    forked_from: toColumn(run.forked_from),
    fork_at_turn: run.fork_at_turn,
    run_count: 1,
    created_at,
    last_used_at: created_at,
  };
}
