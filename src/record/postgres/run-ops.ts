import type { Op, StoreResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { carryOut, allSettled } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { createRuns, isNewRun, type NewRun } from "./create-runs.ts";

interface PendingOp<O extends Op = Op> {
  op: O;
  answer(result: StoreResult): void;
}

type ApplyOp = (tx: Transaction, op: Op) => Work<StoreResult>;

/**
 * Runs the operations of one transaction as if one after the other, with as few round trips as possible: new runs are
 * created together, and writes to the logs of different runs are pipelined.
 */
export async function carryOutOps(
  connection: Connection,
  callers: readonly { ops: readonly Op[] }[],
  tx: Transaction,
  applyOp: ApplyOp,
): Promise<StoreResult[][]> {
  const results = callers.map(({ ops }) => Array<StoreResult>(ops.length));
  const asked = callers.flatMap(({ ops }, caller) =>
    ops.map((op, index): PendingOp => ({ op, answer: (result) => (results[caller]![index] = result) })),
  );
  for (const group of grouped(asked)) {
    const [first] = group;
    if (first === undefined) continue;
    if (isNewRun(first.op)) await createAll(group as PendingOp<NewRun>[]); // a group is of one kind
    else if (runOf(first.op) !== null) await allSettled([...byRun(group)].map(inOrder));
    else await inOrder(group);
  }
  return results;

  async function createAll(group: readonly PendingOp<NewRun>[]): Promise<void> {
    const made = await createRuns(
      connection,
      tx,
      group.map(({ op }) => op),
    );
    const left = group.filter(({ answer }, index) => {
      const result = made[index] ?? null;
      if (result !== null) answer(result);
      return result === null;
    });
    await inOrder(left);
  }

  async function inOrder(group: readonly PendingOp[]): Promise<void> {
    for (const { op, answer } of group) answer(await carryOut(connection, applyOp(tx, op)));
  }
}

/** Groups neighbouring operations of one kind: new runs, writes to logs, and everything else. */
function grouped(asked: readonly PendingOp[]): PendingOp[][] {
  const groups: PendingOp[][] = [];
  let before: string | null = null;
  for (const one of asked) {
    const kind = isNewRun(one.op) ? "new" : runOf(one.op) === null ? "other" : "log";
    if (kind === before) groups.at(-1)?.push(one);
    else groups.push([one]);
    before = kind;
  }
  return groups;
}

/**
 * The run whose log the operation writes to. Operations on different runs write different rows, because a session, a
 * directory and an attempt each have one active run, and only that one writes. Only the demands they release may be shared.
 */
function runOf(op: Op): string | null {
  return op.op === "append_events" || op.op === "finish_run" || op.op === "add_upload" ? op.run_id : null;
}

function byRun(group: readonly PendingOp[]): Iterable<PendingOp[]> {
  const runs = new Map<string, PendingOp[]>();
  for (const one of group) {
    const run_id = runOf(one.op) ?? "";
    const known = runs.get(run_id);
    if (known === undefined) runs.set(run_id, [one]);
    else known.push(one);
  }
  return runs.values();
}
