import type { RunnerIdentity } from "../../model/dispatch-ops.ts";
import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import { hasEnded } from "../../model/states.ts";
import { toColumn } from "../text.ts";
import type { RefusedWrites, Transaction } from "../transaction.ts";
import type { StoredRun, WrittenRun } from "../moves/stored-run.ts";

/** A write of an attempt. */
export interface Write {
  op: string;
  attempt: number;
  runner?: RunnerIdentity;
  events?: readonly NumberedEvent[];
}

/**
 * Reports whether this attempt may no longer write to the run. Operations check separately whether the run has finished.
 */
export function isFenced(run: WrittenRun, op: Write): boolean {
  if (run.attempt !== op.attempt) return true;
  if (run.agent_rev_id === null) return op.runner !== undefined;
  if (run.status === "pending" || run.status === "parked") return true;
  if (op.runner === undefined) return false;
  if (run.runner_id !== toColumn(op.runner.runner_id)) return true;
  const { epoch, owner } = op.runner;
  if (owner !== undefined && run.holder_owner !== toColumn(owner)) return true;
  return run.holder_epoch !== epoch || run.holder_status === "lost";
}

/** Audits a refused write, because the runner may have executed something that is recorded nowhere else. */
export function auditRefused(tx: Transaction, run: StoredRun, op: Write): void {
  if (op.runner === undefined) return;
  // Only executions matter: the runner was no longer allowed to start any.
  addAuditRow(tx, run, op, [op.op], (op.events ?? []).map(({ event }) => event).filter(isExecution));
}

/** Audits events that an otherwise valid writer was not allowed to report. */
export function auditForged(tx: Transaction, run: StoredRun, op: Write, events: readonly RunEvent[]): void {
  const kinds = events.map(({ type }) => type);
  addAuditRow(
    tx,
    run,
    op,
    kinds,
    events.filter((event) => isExecution(event) || event.type === "permission_decision"),
  );
}

function isExecution({ type }: RunEvent): boolean {
  return type === "execution_started" || type === "execution_ended";
}

/** Limits how much refused data a runner can put into the audit trail. */
const maxAuditChars = 64 * 1024;

/** Adds one row per run and runner, with the attempt that was refused first, however many writes a report contains. */
function addAuditRow(
  tx: Transaction,
  run: StoredRun,
  op: Write,
  kinds: readonly string[],
  events: readonly RunEvent[],
): void {
  const refusals = (tx.refused ??= new Map<string, RefusedWrites>());
  const key = JSON.stringify([run.run_id, op.runner ?? null]);
  const existing = refusals.get(key);
  const refused = existing ?? {
    kinds: new Set(),
    writes: 0,
    executions: [],
    decisions: [],
    omitted: 0,
    remainingChars: maxAuditChars,
  };
  refused.writes += 1;
  for (const kind of kinds) refused.kinds.add(kind);
  for (const event of events) addEvent(refused, event);
  if (existing !== undefined) return;
  refusals.set(key, refused);
  const context = {
    runner_id: op.runner?.runner_id ?? null,
    epoch: op.runner?.epoch ?? null,
    current_attempt: run.attempt,
    status: run.status,
    finished: hasEnded(run.status),
  };
  tx.audit.push({
    kind: "fenced",
    execution_id: null,
    run_id: run.run_id,
    attempt: op.attempt,
    at: tx.now.toISOString(),
    // Evaluated when the chain appends the row, after every write of the transaction.
    get body() {
      return JSON.stringify({ refused: [...refused.kinds].join(", "), ...context, ...toRefusedBody(refused) });
    },
  });
}

function addEvent(refused: RefusedWrites, event: RunEvent): void {
  const [list, value] = "execution" in event ? [refused.executions, event.execution] : [refused.decisions, event];
  const length = JSON.stringify(value).length;
  if (length > refused.remainingChars) {
    refused.omitted += 1;
    return;
  }
  refused.remainingChars -= length;
  list.push(value);
}

function toRefusedBody({ writes, executions, decisions, omitted }: RefusedWrites): object {
  return {
    ...(writes === 1 ? {} : { writes }),
    executions,
    ...(omitted === 0 ? {} : { omitted }),
    ...(decisions.length === 0 ? {} : { decisions }),
  };
}
