import type { Op, RunEnd, StoreResult } from "../model/store.ts";
import type { AuditEntry } from "./audit/chain.ts";
import type { ChainHead } from "./audit/head.ts";
import { openTrail, type Seal, type Trail } from "./audit/trail.ts";
import { applyOp } from "./ops/apply-op.ts";
import type { ApplyCoordinatorOp } from "./ops/apply-coordinator-op.ts";
import { countEnds } from "./moves/count-ends.ts";
import type { Work } from "./query.ts";
import type { ChangeSet, Transaction } from "./transaction.ts";

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
  countEnds(ended: readonly RunEnd[], now: Date): Work<void>;
  /** Seals the entries into the chain, inside the transaction. */
  audit(entries: readonly AuditEntry[], now: Date): Work<ChainHead>;
  /** Called after each commit with audit entries, in commit order. */
  onCommit(head: ChainHead): void;
  /** Called after each commit, with the changes to notify listeners of. */
  onChange(changes: ChangeSet): void;
}

export interface Writer extends GroupCommit {
  close(): Promise<void>;
}

/** All operations go through this writer, so that the audit chain covers everything they store. */
export function openWriter(
  seal: Seal,
  onChange: (changes: ChangeSet) => void,
  openGroupCommit: (work: CommitWork) => GroupCommit,
): Writer {
  const trail = openTrail(seal);
  let applyCoordinatorOp: ApplyCoordinatorOp | null = null;
  const commits = openGroupCommit({
    applyOp: (tx, op) => applyOp(tx, op, applyCoordinatorOp),
    onChange: onChange,
    countEnds: countEnds,
    audit: (entries, at) => trail.append(entries, at.toISOString()),
    onCommit: (head) => advanceHead(trail, head),
  });
  return {
    idle: commits.idle,
    async apply(ops) {
      // Loaded on first use, because a cold `exec` never needs the coordinator's operations.
      if (applyCoordinatorOp === null && ops.some((op) => !isRunOp(op)))
        applyCoordinatorOp = (await import("./ops/apply-coordinator-op.ts")).applyCoordinatorOp;
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
function advanceHead(trail: Trail, head: ChainHead): void {
  try {
    trail.advanceHeads(head);
  } catch (error) {
    process.emitWarning(`audit.head could not be written: ${String(error)}`, { code: "DROVER-STA-001" });
  }
}
