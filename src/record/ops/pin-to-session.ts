import type { Demands } from "../../model/run.ts";
import { first, write, type Row, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { type Cap, claimableDemandOf } from "./demands.ts";

const selectPlace = `select hostname, executor_profile, runner_id from sessions where session_id = ? and runner_id is not null`;
const selectDemand = `select body, cap, cap_agent, cap_runner from demands where demand_id = ?`;
const move = `update runs set demand_id = ? where run_no = ?`;

/**
 * A run that was asked for before its session lay anywhere goes to where it lies by now. Gives what it demands from
 * here on.
 */
export function* pinToSession(
  tx: Transaction,
  { run_no, demand_id }: { run_no: number; demand_id: number },
  session: string,
): Work<Demands> {
  const [row = {}] = yield first(selectDemand, demand_id);
  // Written from a run's demands by create_run.
  const demands = JSON.parse(String(row["body"])) as Demands;
  const [place] = yield first(selectPlace, session);
  if (place === undefined || demands.runner_id !== undefined) return demands;
  const pinned = { ...demands };
  for (const name of ["hostname", "executor_profile", "runner_id"] as const)
    pinned[name] = fromColumn(String(place[name]));
  yield write(move, yield* claimableDemandOf(tx, pinned, capOf(row)), run_no);
  return pinned;
}

function capOf({ cap, cap_agent, cap_runner }: Row): Cap | null {
  if (typeof cap !== "number" || typeof cap_agent !== "string") return null;
  const runner_id = typeof cap_runner === "string" ? fromColumn(cap_runner) : null;
  return { agent_name: fromColumn(cap_agent), runner_id, max: cap };
}
