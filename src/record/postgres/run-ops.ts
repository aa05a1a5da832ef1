import type { Op, StoreResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { runWork, waitForAll } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { createRuns, isNewRun, type NewRun } from "../moves/create-many.ts";

interface PendingOp<O extends Op = Op> {
  op: O;
  resolve(result: StoreResult): void;
}

type ApplyOp = (tx: Transaction, op: Op) => Work<StoreResult>;

/**
 * Runs the operations of one transaction as if one after the other, with as few round trips as possible: new runs are
 * created together, and writes to the logs of different runs are pipelined.
 */
export async function runOps(
  connection: Connection,
  callers: readonly { ops: readonly Op[] }[],
  tx: Transaction,
  applyOp: ApplyOp,
): Promise<StoreResult[][]> {
  const results = callers.map(({ ops }) => Array<StoreResult>(ops.length));
  const pendingOps = callers.flatMap(({ ops }, caller) =>
    ops.map((op, index): PendingOp => ({ op, resolve: (result) => (results[caller]![index] = result) })),
  );
  for (const group of groupByKind(pendingOps)) {
    const [first] = group;
    if (first === undefined) continue;
    if (isNewRun(first.op)) await createAll(group as PendingOp<NewRun>[]); // All operations of a group are of one kind.
    else if (getTargetRun(first.op) !== null) await waitForAll([...groupByRun(group)].map(runInOrder));
    else await runInOrder(group);
  }
  return results;

  async function createAll(group: readonly PendingOp<NewRun>[]): Promise<void> {
    const created = await createRuns(
      connection,
      tx,
      group.map(({ op }) => op),
    );
    const remaining = group.filter(({ resolve }, index) => {
      const result = created[index] ?? null;
      if (result !== null) resolve(result);
      return result === null;
    });
    await runInOrder(remaining);
  }

  async function runInOrder(group: readonly PendingOp[]): Promise<void> {
    for (const { op, resolve } of group) resolve(await runWork(connection, applyOp(tx, op)));
  }
}

/** Groups neighbouring operations of one kind: new runs, writes to logs, and everything else. */
function groupByKind(ops: readonly PendingOp[]): PendingOp[][] {
  const groups: PendingOp[][] = [];
  let lastKind: string | null = null;
  for (const pending of ops) {
    const kind = isNewRun(pending.op) ? "new" : getTargetRun(pending.op) === null ? "other" : "log";
    if (kind === lastKind) groups.at(-1)?.push(pending);
    else groups.push([pending]);
    lastKind = kind;
  }
  return groups;
}

/**
 * The run whose log the operation writes to. Operations on different runs write different rows, because a session, a
 * directory and an attempt each have one active run, and only that one writes. They may share only the demands they
 * release.
 */
function getTargetRun(op: Op): string | null {
  return op.op === "append_events" || op.op === "finish_run" || op.op === "add_upload" ? op.run_id : null;
}

function groupByRun(group: readonly PendingOp[]): Iterable<PendingOp[]> {
  const runs = new Map<string, PendingOp[]>();
  for (const pending of group) {
    const run_id = getTargetRun(pending.op) ?? "";
    const sameRun = runs.get(run_id);
    if (sameRun === undefined) runs.set(run_id, [pending]);
    else sameRun.push(pending);
  }
  return runs.values();
}
