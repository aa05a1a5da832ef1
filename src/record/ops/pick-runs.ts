import { all, first, type Row, type Work } from "../query.ts";
import { isClaimable, isResumed, statusIn } from "../moves/statuses.ts";
import { storedColumns, type StoredRun } from "../moves/stored-run.ts";
import { invocationColumns, withInvocations } from "./invocation.ts";
import type { StoredRunner } from "./runner-row.ts";

/** A pending run at the head of a demand's queue. Texts are as stored. */
export interface Head extends StoredRun {
  priority: number;
  /** 1 if it works in place and needs its directory to itself, see ./enter-directory.ts. */
  in_place: number | null;
  project_dir: string | null;
  /** The row with the run's invocation; null if that still has to be read. */
  row: Row | null;
}

const headColumns = [...new Set([...storedColumns, "priority", "in_place", ...invocationColumns.split(/,\s+/)])].join(
  ", ",
);
const selectRows = `
  select demand_id, cap, cap_agent, cap_runner from demand_matches join demands using (demand_id)
  where runner_id = ? and exists (
    select 1 from runs indexed by runs_to_claim
    where runs.demand_id = demand_matches.demand_id and ${isClaimable})`;
const selectHeads = headsBy("runs_to_claim", "");
/** For a runner that takes runs of one agent only; skips any number of other runs. */
const selectHeadsOf = headsBy("runs_to_claim_of", "and agent_name = ?");

/**
 * The variant with invocations saves one statement per run. The plain one is better with several demands: most heads are
 * then not taken, and their invocations may be large.
 */
function headsBy(index: string, agent: string): { plain: string; detailed: string } {
  const plain = `
    select ${headColumns} from runs indexed by ${index}
    where demand_id = ? and ${isClaimable} ${agent}
    order by priority desc, run_id limit ?`;
  return { plain, detailed: `${withInvocations(plain)} order by priority desc, run_id` };
}

/** Whether a resumed run matches the runner. There are few resumed runs. The outer statement provides `runners`. */
export const hasResumed = `exists (
      select 1 from runs indexed by runs_resumed cross join demand_matches
      where ${isResumed} and demand_matches.demand_id = runs.demand_id and demand_matches.runner_id = runners.runner_id)`;
const selectResumed = `
  select ${headColumns
    .split(", ")
    .map((name) => `runs.${name}`)
    .join(", ")}
  from runs indexed by runs_resumed cross join demand_matches
  where ${isResumed} and demand_matches.demand_id = runs.demand_id and demand_matches.runner_id = ?1 and (runs.agent_name = ?2 or ?2 is null)
  order by runs.run_id limit ?3`;

const busy = `agent_rev_id is not null and ${statusIn("busy")}`;
const countBusy = `select count(*) as busy from runs where agent_name = ? and ${busy}`;
const countBusyOn = `select count(*) as busy from runs where agent_name = ? and runner_id = ? and ${busy}`;

/** Picks runs by priority, then age, across all demands the runner meets and within the agents' caps. */
export function* pickRuns({ column, row: { only_agent } }: StoredRunner, want: number): Work<Head[]> {
  const rows = yield all(selectRows, column);
  const only = typeof only_agent === "string" ? [only_agent] : [];
  const { plain, detailed } = only.length === 0 ? selectHeads : selectHeadsOf;
  const wantsDetails = rows.length === 1;
  const room = new Map<string, number>();
  const capOf = new Map<number, string>();
  const heads: Head[] = [];
  for (const row of rows) {
    const free = yield* freeUnder(row, room, capOf);
    if (free < 1) continue;
    const found = yield all(wantsDetails ? detailed : plain, Number(row["demand_id"]), ...only, Math.min(want, free));
    // The statement selects the columns of Head.
    for (const its of found) heads.push({ ...(its as unknown as Omit<Head, "row">), row: wantsDetails ? its : null });
  }
  if (rows.length > 1) heads.sort(byPriority);
  return capOf.size === 0 ? heads.slice(0, want) : underCaps(heads, want, room, capOf);
}

/** Picks resumed runs, ignoring the runner's slots and the agents' caps. */
export function* pickResumed({ column, row }: StoredRunner, most: number): Work<Head[]> {
  const { only_agent = null } = row;
  const found = yield all(selectResumed, column, only_agent, most);
  // The statement selects the columns of Head.
  return found.map((its) => ({ ...(its as unknown as Omit<Head, "row">), row: null }));
}

/** How many more runs the cap of this row allows. Rows of one agent share its cap. */
function* freeUnder(row: Row, room: Map<string, number>, capOf: Map<number, string>): Work<number> {
  const { cap, cap_agent: agent, cap_runner: on } = row;
  if (typeof cap !== "number" || typeof agent !== "string") return Number.POSITIVE_INFINITY;
  const key = JSON.stringify([agent, on, cap]);
  capOf.set(Number(row["demand_id"]), key);
  let free = room.get(key);
  if (free === undefined) {
    const [count] = yield typeof on === "string" ? first(countBusyOn, agent, on) : first(countBusy, agent);
    free = cap - Number(count?.["busy"]);
    room.set(key, free);
  }
  return free;
}

function underCaps(heads: Head[], want: number, room: Map<string, number>, capOf: Map<number, string>): Head[] {
  const taken: Head[] = [];
  for (const head of heads) {
    if (taken.length === want) break;
    const key = capOf.get(head.demand_id);
    const free = key === undefined ? Number.POSITIVE_INFINITY : (room.get(key) ?? 0);
    if (free < 1) continue;
    if (key !== undefined) room.set(key, free - 1);
    taken.push(head);
  }
  return taken;
}

function byPriority(a: Head, b: Head): number {
  return b.priority - a.priority || (a.run_id < b.run_id ? -1 : 1);
}
