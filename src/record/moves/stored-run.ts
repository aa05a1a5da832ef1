import type { ParkReason } from "../../model/executor.ts";
import type { RunStatus } from "../../model/states.ts";
import { first, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { RunPosition } from "../ops/store-events.ts";

export interface StoredRun extends RunPosition {
  /** Encoded as in the column, like all text here except for run_id. */
  created_by: string;
  status: RunStatus;
  failures: number;
  claimed_at: string | null;
  started_at: string | null;
  runner_id: string | null;
  /** The number of the claim with which its runner got the run. */
  claim_no: number | null;
  session_id: string | null;
  blocked_by: string | null;
  demand_id: number;
  /** null if the run's creator executes it and no runner claims it. */
  agent_rev_id: number | null;
  given_back: number | null;
  /** The directory that only this run may use, see ../ops/enter-directory.ts. null if the run may share its directory. */
  directory: string | null;
  /** Number of lost attempts that did not use up an attempt, see ./lose-run.ts. */
  continued: number;
  /** The run's demands once any runner may take it, as JSON. null if it does not wait for its session's runner. */
  demands_after: string | null;
  /** 1 if its questions go to people. */
  attended: number;
  /** 1 if the run has asked a question. */
  asked: number;
  /** 1 if a person wants it to continue, so that it does not wait for a slot, cap or budget. */
  resumed: number;
  /** 1 if its agent has a daily budget. */
  budgeted: number;
  /** 1 if another run may follow it, see ./chain.ts. */
  chained: number;
  /** 1 if some of its parameters are stored encrypted until it ends. */
  sealed: number;
  /** 1 if one of its attempts was parked, so that the next one continues from there. */
  continues: number;
  parked_why: ParkReason | null;
  /** As JSON. */
  usage: string | null;
}

/** A run to be written to, with the runner that holds it. One statement reads both to save a network round trip. */
export interface WrittenRun extends StoredRun {
  /** null if no runner holds the run. Text is encoded. */
  holder_epoch: number | null;
  holder_status: string | null;
  holder_owner: string | null;
}

/** A run that may end, with what to release when it does. */
export interface EndingRun extends WrittenRun {
  /** null if its agent has no cap. */
  cap_agent: string | null;
  agent_type: string | null;
  max_attempts: number | null;
  /** 1 if another run of its session waits for it. */
  awaited: number;
  /** 1 if another run of its schedule waits for it. */
  followed: number;
}

export const storedColumns = [
  "run_no",
  "run_id",
  "created_by",
  "status",
  "attempt",
  "last_n",
  "last_seq",
  "parent_run_id",
  "created_at",
  "failures",
  "claimed_at",
  "started_at",
  "runner_id",
  "claim_no",
  "session_id",
  "blocked_by",
  "demand_id",
  "agent_rev_id",
  "given_back",
  "directory",
  "continued",
  "demands_after",
  "attended",
  "asked",
  "resumed",
  "budgeted",
  "chained",
  "sealed",
  "continues",
  "parked_why",
  "usage",
];
export const selectStored = `
  select ${storedColumns.join(", ")}
  from runs`;
const selectPosition = `${selectStored} where run_id = ?`;
const writtenColumns = `
  ${storedColumns.map((name) => `runs.${name}`).join(", ")},
  runners.epoch as holder_epoch, runners.status as holder_status, runners.owner as holder_owner`;
const selectWritten = `
  select ${writtenColumns} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;
/** Columns of an EndingRun, from `runs` and `runners`. */
export const endingColumns = `${writtenColumns},
    (select cap_agent from demands where demands.demand_id = runs.demand_id) as cap_agent,
    (select type from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as agent_type,
    (select max_attempts from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as max_attempts,
    exists (
      select 1 from runs next where next.session_id = runs.session_id and next.status = 'pending' and next.blocked_by = 'session'
    ) as awaited,
    exists (select 1 from schedule_slots where schedule_slots.waits_for = runs.run_id) as followed`;
const selectEnding = `
  select ${endingColumns} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;

export function findRun(run_id: string): Work<StoredRun | null> {
  return findByRunId(selectPosition, run_id);
}

export function findWrittenRun(run_id: string): Work<WrittenRun | null> {
  return findByRunId(selectWritten, run_id);
}

export function findEndingRun(run_id: string): Work<EndingRun | null> {
  return findByRunId(selectEnding, run_id);
}

function* findByRunId<R extends StoredRun>(text: string, run_id: string): Work<R | null> {
  const [row] = yield first(text, toColumn(run_id));
  if (row === undefined) return null;
  // Each statement selects exactly the columns of its type. run_id is the decoded text.
  return { ...(row as unknown as R), run_id };
}
