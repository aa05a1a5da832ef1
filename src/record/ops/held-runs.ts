import { all, type Row, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import { invocationColumns, withInvocations } from "./invocation.ts";
import { isAssigned } from "../moves/statuses.ts";
import { ending, selectStored, type EndingRun, type StoredRun } from "../moves/stored-run.ts";

const selectHeld = `${selectStored} where runner_id = ? and ${isAssigned} order by claim_no, run_no limit ?`;
const selectOfClaim = `
  select run_no, status, ${invocationColumns} from runs where runner_id = ? and claim_no = ? and ${isAssigned}`;
const selectGiven = `${withInvocations(selectOfClaim)} order by run_no`;
/** From the few that were lost, however many runs there are. */
const selectOfLost = `
  select ${ending} from runners indexed by runners_lost cross join runs indexed by runs_by_runner
  where runners.status = 'lost' and runs.runner_id = runners.runner_id
    and ${isAssigned}
  order by runners.runner_id, runs.claim_no, runs.run_no limit ?`;

/** What runners hold that were lost: all of them in one question, as there may be thousands. */
export function* runsOfLostRunners(limit: number): Work<EndingRun[]> {
  // The statement selects exactly the columns of an EndingRun.
  return (yield all(selectOfLost, limit)).map((row) => storedRun(row) as EndingRun);
}

/** What a runner was handed and has not brought to an end. `runner` as stored. */
export function* heldRuns(runner: string, limit = 1_000_000_000): Work<StoredRun[]> {
  return (yield all(selectHeld, runner, limit)).map(storedRun);
}

/** What this claim was given: rows with their invocations. */
export function* runsOfClaim(runner: string, claim_no: number): Work<Row[]> {
  return yield all(selectGiven, runner, claim_no);
}

/** Of a row that selectStored selects. */
export function storedRun(row: object): StoredRun {
  // The statements select exactly these columns.
  const run = row as StoredRun;
  return { ...run, run_id: fromColumn(run.run_id) };
}
