import { BugError } from "../../model/errors.ts";
import type { RefuseChain, HookResult } from "../../model/hook-ops.ts";
import { endRun } from "../moves/lose-run.ts";
import { notify } from "../moves/notify.ts";
import { findRun } from "../moves/stored-run.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { createRun } from "./create-run.ts";
import { isTriggerSettled, settleTrigger } from "./settle-trigger.ts";

/** Creates the child run and ends it in the same transaction, so no runner ever sees it. */
export function* refuseChain(tx: Transaction, { parent_run_id, run, why: reason }: RefuseChain): Work<HookResult> {
  const chain = { chain_of: parent_run_id };
  if (yield* isTriggerSettled(chain)) return { ok: false, conflict: "repeated" };
  const created = yield* createRun(tx, { op: "create_run", run, events: [] });
  const stored = yield* findRun(run.run_id);
  if (!created.ok || stored === null) throw new BugError("the id of a new run was taken");
  yield* endRun(tx, stored, "failed", "refused", reason);
  yield* settleTrigger(chain, run.run_id, "refused");
  yield* notify(tx, stored, "failed", tx.now.toISOString(), { reason: "refused", error: reason });
  return { ok: true, op: "refuse_chain" };
}
