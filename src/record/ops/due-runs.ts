import { isAssigned } from "../../model/states.ts";
import { endRun } from "../moves/lose-run.ts";
import { move } from "../moves/move.ts";
import { continueRun } from "../moves/park.ts";
import { decideQuestion } from "../moves/questions.ts";
import { endingColumns, type EndingRun } from "../moves/stored-run.ts";
import { all, first, write, type Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { toStoredRun } from "./assigned-runs.ts";
import { sendOrder } from "./orders.ts";

const selectEnding = `select ${endingColumns} from runs left join runners on runners.runner_id = runs.runner_id`;
const selectDue = `
  select run_no from runs indexed by runs_parked_until
  where status = 'parked' and parked_until is not null and parked_until <= ? order by parked_until limit ?`;
const selectExpired = `
  select * from questions where decision is null and expires_at <= ? order by expires_at limit ?`;
const selectRun = `${selectEnding} where runs.run_no = ?`;
const deleteExpiredLimits = `delete from usage_limits where until <= ?`;

/** Resumes parked runs whose waiting time is over. Returns their ids. */
export function* resumeDueRuns(tx: Transaction, limit: number): Work<string[]> {
  const now = tx.now.toISOString();
  yield write(deleteExpiredLimits, tx.now.getTime());
  const resumed: string[] = [];
  for (const { run_no = null } of yield all(selectDue, now, limit)) {
    const run = yield* findByNumber(Number(run_no));
    yield* continueRun(tx, run, "Its waiting time is over.", { ignoresLimits: false });
    resumed.push(run.run_id);
  }
  return resumed;
}

/** Fails runs whose question nobody answered in time. Returns the failed runs and the number of expired questions. */
export function* expireQuestions(tx: Transaction, limit: number): Work<{ failed: string[]; expired: number }> {
  const failed: string[] = [];
  const rows = yield all(selectExpired, tx.now.getTime(), limit);
  for (const question of rows) {
    const run = yield* findByNumber(Number(question["run_no"]));
    // An earlier question of the same run may have closed this one.
    const [current] = yield first(
      "select decision from questions where question_no = ?",
      Number(question["question_no"]),
    );
    if (current?.["decision"] !== null) continue;
    yield* decideQuestion(tx, run, question, { decision: "expired" });
    if (isAssigned(run.status)) {
      yield* sendOrder(tx, run, { stop: "approval_expired" });
      yield* move(tx, run, "stopping", { cause: expiredMessage });
      continue;
    }
    yield* endRun(tx, run, "failed", "approval_expired", expiredMessage);
    failed.push(run.run_id);
  }
  return { failed, expired: rows.length };
}

export const expiredMessage = "Nobody answered the run's question in time.";

function* findByNumber(run_no: number): Work<EndingRun> {
  const [row = {}] = yield first(selectRun, run_no);
  // The statement selects exactly the columns of an EndingRun.
  return toStoredRun(row) as EndingRun;
}
