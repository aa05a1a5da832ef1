import type { Op, RunEnd, StoreResult } from "../model/store.ts";
import type { AuditEntry } from "./audit/chain.ts";
import type { ChainHead } from "./audit/head.ts";
import { openTrail, type Seal, type Trail } from "./audit/trail.ts";
import { applyOp } from "./ops/apply-op.ts";
import type { ApplyOther } from "./ops/apply-other.ts";
import { countEnds } from "./moves/count-ends.ts";
import type { Work } from "./query.ts";
import type { Changed, Transaction } from "./transaction.ts";

/** How an engine puts the operations of many callers into one transaction. */
export interface GroupCommit {
  apply(ops: readonly Op[]): Promise<StoreResult[]>;
  /** Resolves once nothing waits any more. */
  idle(): Promise<void>;
}

/** What a transaction consists of, whichever engine carries it out. */
export interface CommitWork {
  applyOp(tx: Transaction, op: Op): Work<StoreResult>;
  /** Counts the runs that ended, inside the transaction. */
  count(ended: readonly RunEnd[], now: Date): Work<void>;
  /** Seals the entries into the chain, inside the transaction. */
  audit(entries: readonly AuditEntry[], now: Date): Work<ChainHead>;
  /** After the commit, in the order of commits. */
  committed(head: ChainHead): void;
  /** After the commit too. */
  changed(changed: Changed): void;
}

export interface Writer extends GroupCommit {
  close(): Promise<void>;
}

/** Everything that writes goes through here, so that nothing is stored without its place in the chain. */
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
      // A cold `exec` never needs these, and does not load them.
      if (other === null && ops.some((op) => !isRunOp(op))) other = (await import("./ops/apply-other.ts")).applyOther;
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

/** The rows are durable already: a head that stays behind is told, and no reason to call them lost. */
function advance(trail: Trail, reached: ChainHead): void {
  try {
    trail.committed(reached);
  } catch (fault) {
    process.emitWarning(`audit.head could not be written: ${String(fault)}`, { code: "DROVER-STA-001" });
  }
}
