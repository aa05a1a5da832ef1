import type { Op, RunEnd, StoreResult } from "../model/store.ts";
import type { AuditEntry } from "./audit/chain.ts";
import type { ChainHead } from "./audit/head.ts";
import { openTrail, type Seal, type Trail } from "./audit/trail.ts";
import { applyOp } from "./ops/apply-op.ts";
import type { ApplyOther } from "./ops/apply-coordinator-op.ts";
import { countEnds } from "./moves/count-ends.ts";
import type { Work } from "./query.ts";
import type { Changed, Transaction } from "./transaction.ts";

/** Combines the operations of many callers into one transaction. */
export interface GroupCommit {
  apply(ops: readonly Op[]): Promise<StoreResult[]>;
  /** Resolves once nothing is waiting. */
  idle(): Promise<void>;
}

/** The steps of a transaction, independent of the engine. */
export interface CommitWork {
  applyOp(tx: Transaction, op: Op): Work<StoreResult>;
  /** Updates the counts of ended runs, inside the transaction. */
  count(ended: readonly RunEnd[], now: Date): Work<void>;
  /** Seals the entries into the chain, inside the transaction. */
  audit(entries: readonly AuditEntry[], now: Date): Work<ChainHead>;
  /** Called after each commit, in commit order. */
  committed(head: ChainHead): void;
  /** Called after each commit. */
  changed(changed: Changed): void;
}

export interface Writer extends GroupCommit {
  close(): Promise<void>;
}

/** All writes go through here, so that everything stored is covered by the audit chain. */
export function openWriter(
  seal: Seal,
  changed: (changed: Changed) => void,
  commitWith: (work: CommitWork) => GroupCommit,
): Writer {
  const trail = openTrail(seal);
  let other: ApplyOther | null = null;
  const commits = commitWith({
    applyOp: (tx, op) => applyOp(tx, op, other),
    changed,
    count: countEnds,
    audit: (entries, at) => trail.append(entries, at.toISOString()),
    committed: (reached) => advance(trail, reached),
  });
  return {
    idle: commits.idle,
    async apply(ops) {
      // A cold `exec` never needs these, so they load on first use.
      if (other === null && ops.some((op) => !isRunOp(op))) other = (await import("./ops/apply-coordinator-op.ts")).applyOther;
      return commits.apply(ops);
    },
    async close() {
      await commits.idle();
      trail.close();
    },
  };
}

function isRunOp({ op }: Op): boolean {
  return op === "create_run" || op === "append_events" || op === "finish_run";
}

/** The rows are already durable, so a head that could not be written is only a warning. */
function advance(trail: Trail, reached: ChainHead): void {
  try {
    trail.committed(reached);
  } catch (error) {
    process.emitWarning(`audit.head could not be written: ${String(error)}`, { code: "DROVER-STA-001" });
  }
}
