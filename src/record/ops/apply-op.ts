import { BugError } from "../../model/errors.ts";
import type { Op, StoreResult } from "../../model/store.ts";
import type { Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { appendEvents } from "./append-events.ts";
import type { ApplyCoordinatorOp } from "./apply-coordinator-op.ts";
import { createRun } from "./create-run.ts";
import { finishRun } from "./finish-run.ts";

/** Every operation checks for conflicts before it writes, so that a conflict changes nothing. */
export function applyOp(tx: Transaction, op: Op, applyCoordinatorOp: ApplyCoordinatorOp | null): Work<StoreResult> {
  switch (op.op) {
    case "create_run":
      return createRun(tx, op);
    case "append_events":
      return appendEvents(tx, op);
    case "finish_run":
      return finishRun(tx, op);
    default:
      if (applyCoordinatorOp === null) throw new BugError(`${op.op} was applied before its code was loaded`);
      return applyCoordinatorOp(tx, op);
  }
}
