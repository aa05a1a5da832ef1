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
