import type { ClaimedRun } from "../../model/dispatch-ops.ts";
import { first, write, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { move } from "../moves/move.ts";
import { buildClaimedRun, selectInvocation } from "./invocation.ts";
import type { QueueHead } from "./pick-runs.ts";
import type { StoredRunner } from "./runner-row.ts";

const placeSession = `
  update sessions set hostname = ?, executor_profile = ?, place_id = ?, runner_id = ?, runner_dir = ?,
    project_dir = coalesce(project_dir, ?)
  where session_id = ?`;

/** Assigns the run to this runner, with a new attempt number. */
export function* assignRun(tx: Transaction, runner: StoredRunner, head: QueueHead, claim_no: number): Work<ClaimedRun> {
  const attempt = head.attempt + 1;
  const run = { ...head, run_id: fromColumn(head.run_id), attempt, last_n: 0 };
  const columns = { attempt, runner_id: runner.storedId, claim_no, prefer_until: null };
  yield* move(tx, run, "claimed", { cause: fromColumn(runner.storedId), columns });
  if (head.session_id !== null) {
    const { hostname = null, executor_profile = null, place_id = null, project_dir = null } = runner.row;
    // A run in place stays in this project directory, even if another runner continues its session.
    const sessionProjectDir = head.in_place === null ? null : project_dir;
    const values = [hostname, executor_profile, place_id, runner.storedId, project_dir, sessionProjectDir];
    yield write(placeSession, ...values, head.session_id);
  }
  const [details = {}] = head.row === null ? yield first(selectInvocation, run.run_no) : [head.row];
  return yield* buildClaimedRun(runner, details, attempt);
}
