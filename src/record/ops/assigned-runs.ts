import { all, type Row, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import { invocationColumns, joinInvocations } from "./invocation.ts";
import { isAssignedToRunner } from "../moves/statuses.ts";
import { endingColumns, selectStored, type EndingRun, type StoredRun } from "../moves/stored-run.ts";

const selectAssigned = `${selectStored} where runner_id = ? and ${isAssignedToRunner} order by claim_no, run_no limit ?`;
const selectRunsOfClaim = `
  select run_no, status, ${invocationColumns} from runs where runner_id = ? and claim_no = ? and ${isAssignedToRunner}`;
const selectClaimed = `${joinInvocations(selectRunsOfClaim)} order by run_no`;
/** Starts from the few lost runners, so its cost does not grow with the number of runs. */
const selectRunsOfLostRunners = `
  select ${endingColumns} from runners indexed by runners_lost cross join runs indexed by runs_by_runner
  where runners.status = 'lost' and runs.runner_id = runners.runner_id
    and ${isAssignedToRunner}
  order by runners.runner_id, runs.claim_no, runs.run_no limit ?`;

/** The runs that are still assigned to lost runners. One statement for all runners, because there may be thousands. */
export function* findRunsOfLostRunners(limit: number): Work<EndingRun[]> {
  // The statement selects exactly the columns of an EndingRun.
  return (yield all(selectRunsOfLostRunners, limit)).map((row) => toStoredRun(row) as EndingRun);
}

/** The unfinished runs of a runner. `runner_id` is the id as the database stores it. */
export function* findAssignedRuns(runner_id: string, limit = 1_000_000_000): Work<StoredRun[]> {
  return (yield all(selectAssigned, runner_id, limit)).map(toStoredRun);
}

/** The runs that this claim got, with their invocations. */
export function* findRunsOfClaim(runner_id: string, claim_no: number): Work<Row[]> {
  return yield all(selectClaimed, runner_id, claim_no);
}

/** Converts a row with at least the columns of selectStored, and keeps any others. */
export function toStoredRun(row: object): StoredRun {
  // Every statement here and in the callers selects at least these columns.
  const run = row as StoredRun;
  return { ...run, run_id: fromColumn(run.run_id) };
}
