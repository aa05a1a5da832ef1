import type { Speaker } from "../../model/dispatch-ops.ts";
import type { NumberedEvent } from "../../model/event.ts";
import { isTerminal } from "../../model/states.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun, WrittenRun } from "../moves/stored-run.ts";

/** Whatever an attempt writes. */
interface Write {
  op: string;
  attempt: number;
  runner?: Speaker;
  events?: readonly NumberedEvent[];
}

/** May this attempt still speak for the run? A finished run is for the operations to judge. */
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

/** A runner that was refused goes on the record: it may have done something nobody knows of. */
export function auditRefused(tx: Transaction, run: StoredRun, op: Write): void {
  if (op.runner === undefined) return;
  const body = {
    refused: op.op,
    runner_id: op.runner.runner_id,
    epoch: op.runner.epoch,
    current_attempt: run.attempt,
    status: run.status,
    finished: isTerminal(run.status),
    // what it started although it was no longer its turn; its other events are not kept
    executions: (op.events ?? []).flatMap(({ event }) =>
      event.type === "execution_started" || event.type === "execution_ended" ? [event.execution] : [],
    ),
  };
  tx.audit.push({
    kind: "fenced",
    execution_id: null,
    run_id: run.run_id,
    attempt: op.attempt,
    at: tx.now.toISOString(),
    body: JSON.stringify(body),
  });
}
