import type { ParkReason } from "../../model/executor.ts";
import type { RunStatus } from "../../model/states.ts";
import { placeInSession } from "../ops/place-run.ts";
import type { SqlValue, Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { move } from "./move.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

interface MoveExtras {
  /** The last status that the run's events led to before this move. */
  fromStatus?: RunStatus;
  columns?: Record<string, SqlValue>;
}

export interface ParkOptions extends MoveExtras {
  reason: ParkReason;
  /** When the run resumes automatically; null if a person has to resume it. */
  until: string | null;
  message: string;
}

/** Parks a run whose processes have all ended. */
export function* park(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  { reason, until, message, fromStatus = run.status, columns = {} }: ParkOptions,
): Work<void> {
  const parked = { ...columns, parked_why: reason, parked_until: until };
  yield* move(tx, run, "parked", {
    cause: message,
    waitingFor: message,
    fromStatus,
    columns: parked,
    executionsEnded: true,
  });
}

/**
 * Returns a parked run to pending without using up an attempt. A run that had started goes to the runner that has its
 * session. `ignoresLimits` is for a run that a person resumed: it waits neither for a slot nor for its agent's cap.
 */
export function* continueRun(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  reason: string,
  { ignoresLimits, fromStatus = run.status, columns = {} }: MoveExtras & { ignoresLimits: boolean },
): Work<void> {
  const placement =
    run.continues === 1 && run.session_id !== null ? yield* placeInSession(tx, run.run_no, run.session_id) : null;
  const movedRun = placement?.columns == null ? run : { ...run, demand_id: placement.columns.demand_id };
  const resumedColumns = { ...columns, ...placement?.columns, resumed: ignoresLimits ? 1 : 0 };
  yield* move(tx, movedRun, "pending", { cause: reason, fromStatus, columns: resumedColumns });
}
