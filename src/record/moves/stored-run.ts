import type { ParkReason } from "../../model/executor.ts";
import type { RunStatus } from "../../model/states.ts";
import { first, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { RunPosition } from "../ops/store-events.ts";

export interface StoredRun extends RunPosition {
  /** As stored, as are the other texts here but run_id. */
  created_by: string;
  status: RunStatus;
  failures: number;
  claimed_at: string | null;
  started_at: string | null;
  runner_id: string | null;
  /** By which its runner was given it. */
  claim_no: number | null;
  session_id: string | null;
  blocked_by: string | null;
  demand_id: number;
  /** null: whoever made the run runs it; no runner claims it. */
  agent_rev_id: number | null;
  given_back: number | null;
  /** Where it works alone, see ../ops/directory.ts; null: it may share. */
  directory: string | null;
  /** Lost attempts that cost nothing, see ./lose.ts. */
  continued: number;
  /** What it demands where it need not go to its session's place. */
  demands_after: string | null;
  /** 1: its questions go to people. */
  attended: number;
  /** 1: it has asked some. */
  asked: number;
  /** 1: somebody wants it to go on, so that it waits for no slot, cap or budget. */
  resumed: number;
  /** 1: its agent has a budget for each day. */
  budgeted: number;
  /** 1: another run follows it, see ./chain.ts. */
  chained: number;
  /** 1: something that it was asked with is kept encrypted until it ends. */
  sealed: number;
  /** 1: an attempt of it was parked. */
  continues: number;
  parked_why: ParkReason | null;
  /** As JSON. */
  usage: string | null;
}

/** A run that is about to be written to, with the runner that has it: over a network each question is a wait. */
export interface WrittenRun extends StoredRun {
  /** null: no runner has it. Texts as stored. */
  holder_epoch: number | null;
  holder_status: string | null;
  holder_owner: string | null;
}

/** And with what its end may set free. */
export interface EndingRun extends WrittenRun {
  /** null: its agent may have any number of runs at work. */
  cap_agent: string | null;
  agent_type: string | null;
  max_attempts: number | null;
  /** 1: another run of its session waits for it. */
  awaited: number;
  /** 1: another run of its schedule does. */
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
const written = `
  ${storedColumns.map((name) => `runs.${name}`).join(", ")},
  runners.epoch as holder_epoch, runners.status as holder_status, runners.owner as holder_owner`;
const selectWritten = `
  select ${written} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;
/** Of `runs` and `runners`, for an EndingRun. */
export const ending = `${written},
    (select cap_agent from demands where demands.demand_id = runs.demand_id) as cap_agent,
    (select type from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as agent_type,
    (select max_attempts from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as max_attempts,
    exists (
      select 1 from runs next where next.session_id = runs.session_id and next.status = 'pending' and next.blocked_by = 'session'
    ) as awaited,
    exists (select 1 from schedule_slots where schedule_slots.waits_for = runs.run_id) as followed`;
const selectEnding = `
  select ${ending} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;

export function findRun(run_id: string): Work<StoredRun | null> {
  return find(selectPosition, run_id);
}

export function findWritten(run_id: string): Work<WrittenRun | null> {
  return find(selectWritten, run_id);
}

export function findEnding(run_id: string): Work<EndingRun | null> {
  return find(selectEnding, run_id);
}

function* find<R extends StoredRun>(text: string, run_id: string): Work<R | null> {
  const [row] = yield first(text, toColumn(run_id));
  if (row === undefined) return null;
  // Each statement selects exactly the columns of its type; run_id is given back as it came, not as stored.
  return { ...(row as unknown as R), run_id };
}
