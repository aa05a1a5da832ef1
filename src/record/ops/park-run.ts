import type { Agent } from "../../model/agent.ts";
import type { ParkReason } from "../../model/executor.ts";
import type { RunStatus } from "../../model/states.ts";
import type { FinishRun } from "../../model/store.ts";
import { readAgentSnapshot } from "../moves/agent-snapshot.ts";
import { continueRun, park } from "../moves/park.ts";
import { summarizeDecisions, formatStopMessage } from "../moves/questions.ts";
import type { EndingRun } from "../moves/stored-run.ts";
import type { SqlValue, Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { getNextDay, shareLimit, findSpentBudget } from "./spending.ts";

type Parking = NonNullable<FinishRun["parked"]>;

const messages: Record<ParkReason, string> = {
  approval: "It is waiting for an answer.",
  budget: "Its budget is spent.",
  usage_limit: "The usage limit of its account has been reached.",
};

/** Parks a run that its runner has stopped for now. Returns a result if the run has to end instead. */
export function* parkRun(
  tx: Transaction,
  run: EndingRun,
  { parked, result }: FinishRun,
  { fromStatus, columns: columnsBefore }: { fromStatus: RunStatus; columns: Record<string, SqlValue> },
): Work<FinishRun["result"] | null> {
  const agent = yield* readAgentSnapshot(run);
  if (parked === undefined || agent === null || failsOn(parked.why, agent)) return result;
  const columns = { ...columnsBefore, given_back: run.attempt, continues: 1 };
  const startedRun = { ...run, continues: 1 };
  if (parked.why === "approval") {
    const { open, decided, stopped } = yield* summarizeDecisions(run);
    if (stopped !== null)
      return { ...result, status: "failed", reason: "permission_denied", error: formatStopMessage(stopped) };
    // A person answered before the run was parked.
    if (!open && decided) {
      yield* continueRun(tx, startedRun, "Answered.", { ignoresLimits: true, fromStatus, columns });
      return null;
    }
  }
  const until = yield* findResumeTime(tx, run, parked);
  if (parked.why === "usage_limit" && until !== null) yield* shareLimit(tx, run, agent, until);
  yield* park(tx, startedRun, {
    reason: parked.why,
    until,
    message: parked.message ?? messages[parked.why],
    fromStatus,
    columns,
  });
  return null;
}

function failsOn(why: ParkReason, { budget, on_usage_limit }: Agent): boolean {
  return why === "budget" ? budget?.when_spent === "fail" : why === "usage_limit" && on_usage_limit === "fail";
}

/** The executor does not know when the record's day ends, so the store decides. */
function* findResumeTime(tx: Transaction, run: EndingRun, { why, until }: Parking): Work<string | null> {
  if (until !== undefined) return new Date(until).toISOString();
  return why === "budget" && (yield* findSpentBudget(tx, run)) !== null ? getNextDay(tx.now) : null;
}
