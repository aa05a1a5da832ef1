import type { Demands } from "../model/run.ts";
import type { Requeued, RunEnd } from "../model/store.ts";
import type { AuditEntry } from "./audit/chain.ts";

/** What an operation gets to work with. Everything in it is durable at once, or not at all. */
export interface Transaction {
  /** The store's clock, one moment for all operations of the transaction. */
  now: Date;
  /** To be appended to the chain when all operations are done. */
  audit: AuditEntry[];
  /** Told to whoever listens, after the commit. */
  changed: Changed;
  /** Executions that this transaction begins or ends: the chain has them only when it is done. */
  executions?: Map<string, KnownExecution>;
  /** Refused writes, by run and runner: many of one report are one row. */
  refused?: Map<string, RefusedWrites>;
}

/** What was refused of one runner for one run. */
export interface RefusedWrites {
  kinds: Set<string>;
  writes: number;
  executions: object[];
  decisions: object[];
  /** Executions and decisions that are not kept. */
  omitted: number;
  /** How much more is kept. */
  room: number;
}

/** Whose an execution is. */
export interface KnownExecution {
  run_id: string;
  attempt: number;
  ended: boolean;
}

export interface Changed {
  runs: Set<string>;
  claimable: Demands[];
  resumed?: Demands[];
  ordered: Set<string>;
  schedules?: true;
  ended?: RunEnd[];
  requeued?: Requeued[];
}
