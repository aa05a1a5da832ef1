import { isHeld } from "../../model/states.ts";
import { end } from "../moves/lose-run.ts";
import { move } from "../moves/move.ts";
import { continueRun } from "../moves/park.ts";
import { decide } from "../moves/questions.ts";
import { ending, type EndingRun } from "../moves/stored-run.ts";
import { all, first, write, type Work } from "../query.ts";
import type { Transaction } from "../transaction.ts";
import { storedRun } from "./held-runs.ts";
import { giveOrder } from "./orders.ts";

const endingRuns = `select ${ending} from runs left join runners on runners.runner_id = runs.runner_id`;
const selectDue = `
  select run_no from runs indexed by runs_parked_until
  where status = 'parked' and parked_until is not null and parked_until <= ? order by parked_until limit ?`;
const selectExpired = `
  select * from questions where decision is null and expires_at <= ? order by expires_at limit ?`;
const selectRun = `${endingRuns} where runs.run_no = ?`;
const forgetLimits = `delete from usage_limits where until <= ?`;

/** Resumes parked runs whose waiting time is over. Returns their ids. */
export function* resumeDue(tx: Transaction, most: number): Work<string[]> {
  const now = tx.now.toISOString();
  yield write(forgetLimits, tx.now.getTime());
  const resumed: string[] = [];
  for (const { run_no = null } of yield all(selectDue, now, most)) {
    const run = yield* find(Number(run_no));
    yield* continueRun(tx, run, "Its time has come.", { atOnce: false });
    resumed.push(run.run_id);
  }
  return resumed;
}

/** Fails runs whose question nobody answered in time. Returns the failed runs and the number of expired questions. */
export function* expireQuestions(tx: Transaction, most: number): Work<{ failed: string[]; expired: number }> {
  const failed: string[] = [];
  const rows = yield all(selectExpired, tx.now.getTime(), most);
  for (const question of rows) {
    const run = yield* find(Number(question["run_no"]));
    // An earlier question of the same run may have closed this one.
    const [still] = yield first(
      "select decision from questions where question_no = ?",
      Number(question["question_no"]),
    );
    if (still?.["decision"] !== null) continue;
    yield* decide(tx, run, question, { decision: "expired" });
    if (isHeld(run.status)) {
      yield* giveOrder(tx, run, { stop: "approval_expired" });
      yield* move(tx, run, "stopping", { why: expiredMessage });
      continue;
    }
    yield* end(tx, run, "failed", "approval_expired", expiredMessage);
    failed.push(run.run_id);
  }
  return { failed, expired: rows.length };
}

export const expiredMessage = "Nobody answered its question in time.";

function* find(run_no: number): Work<EndingRun> {
  const [row = {}] = yield first(selectRun, run_no);
  // The statement selects exactly the columns of an EndingRun.
  return storedRun(row) as EndingRun;
}
