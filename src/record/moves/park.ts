import type { ParkReason } from "../../model/executor.ts";
import type { RunStatus } from "../../model/states.ts";
import { placeInSession } from "../ops/place-run.ts";
import type { SqlValue, Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { move } from "./move.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

interface Aside {
  /** The last of the states that its events took it through. */
  via?: RunStatus;
  columns?: Record<string, SqlValue>;
}

export interface Parked extends Aside {
  why: ParkReason;
  /** When it goes on by itself; null: somebody has to make it. */
  until: string | null;
  message: string;
}

/** Nothing of it is alive from here on. */
export function* park(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  { why, until, message, via = run.status, columns = {} }: Parked,
): Work<void> {
  const parked = { ...columns, parked_why: why, parked_until: until };
  yield* move(tx, run, "parked", { why: message, waitingFor: message, via, columns: parked, settled: true });
}

/**
 * Back to pending at no cost; where it has begun, to the runner that has its session. `atOnce`: somebody wants it to go on,
 * so that it waits neither for a slot nor for its agent's cap.
 */
export function* goOn(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  why: string,
  { atOnce, via = run.status, columns = {} }: Aside & { atOnce: boolean },
): Work<void> {
  const placed =
    run.continues === 1 && run.session_id !== null ? yield* placeInSession(tx, run.run_no, run.session_id) : null;
  const moved = placed?.columns == null ? run : { ...run, demand_id: placed.columns.demand_id };
  const going = { ...columns, ...placed?.columns, resumed: atOnce ? 1 : 0 };
  yield* move(tx, moved, "pending", { why, via, columns: going });
}
