import type { Demands } from "../model/run.ts";
import type { RequeuedRun, RunEnd } from "../model/store.ts";
import type { AuditEntry } from "./audit/chain.ts";

/** Context of the operations in one transaction. They commit together or not at all. */
export interface Transaction {
  /** The store's clock, the same time for all operations of the transaction. */
  now: Date;
  /** Entries to append to the audit chain after all operations. */
  audit: AuditEntry[];
  /** Changes to notify listeners of after the commit. */
  changes: ChangeSet;
  /** Executions that this transaction starts or ends. The chain contains them only after the commit. */
  executions?: Map<string, ExecutionState>;
  /** Refused writes by run and runner: all refusals of one report become one audit row. */
  refused?: Map<string, RefusedWrites>;
}

/** Refused writes of one runner for one run. */
export interface RefusedWrites {
  kinds: Set<string>;
  writes: number;
  executions: object[];
  decisions: object[];
  /** Number of executions and decisions omitted from the audit row. */
  omitted: number;
  /** Remaining space in the audit row. */
  remainingChars: number;
}

/** The run and attempt that an execution belongs to. */
export interface ExecutionState {
  run_id: string;
  attempt: number;
  ended: boolean;
}

export interface ChangeSet {
  runs: Set<string>;
  claimable: Demands[];
  resumed?: Demands[];
  runnersWithOrders: Set<string>;
  schedules?: true;
  ended?: RunEnd[];
  requeued?: RequeuedRun[];
}
