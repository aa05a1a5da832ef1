import { all, first, type Row, type Work } from "../query.ts";
import { isClaimable, isResumed, statusIn } from "../moves/statuses.ts";
import { storedColumns, type StoredRun } from "../moves/stored-run.ts";
import { invocationColumns, joinInvocations } from "./invocation.ts";
import type { StoredRunner } from "./runner-row.ts";

/** A pending run at the head of a demand's queue. Texts are encoded. */
export interface QueueHead extends StoredRun {
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
const selectDemands = `
  select demand_id, cap, cap_agent, cap_runner from demand_matches join demands using (demand_id)
  where runner_id = ? and exists (
    select 1 from runs indexed by runs_to_claim
    where runs.demand_id = demand_matches.demand_id and ${isClaimable})`;
const selectHeads = buildHeadStatements("runs_to_claim", "");
/** For a runner that takes runs of one agent only. Its index skips all other runs. */
const selectHeadsOfAgent = buildHeadStatements("runs_to_claim_of", "and agent_name = ?");

/**
 * `detailed` includes the invocations, which saves one statement per run. `plain` is better for several demands: most heads
 * are then not taken, and their invocations may be large.
 */
function buildHeadStatements(index: string, agent: string): { plain: string; detailed: string } {
  const plain = `
    select ${headColumns} from runs indexed by ${index}
    where demand_id = ? and ${isClaimable} ${agent}
    order by priority desc, run_id limit ?`;
  return { plain, detailed: `${joinInvocations(plain)} order by priority desc, run_id` };
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

const isBusy = `agent_rev_id is not null and ${statusIn("busy")}`;
const countBusy = `select count(*) as busy from runs where agent_name = ? and ${isBusy}`;
const countBusyOn = `select count(*) as busy from runs where agent_name = ? and runner_id = ? and ${isBusy}`;

/** Picks runs by priority, then age, across all demands the runner meets and within the agents' caps. */
export function* pickRuns({ storedId, row: { only_agent } }: StoredRunner, want: number): Work<QueueHead[]> {
  const rows = yield all(selectDemands, storedId);
  const agentFilter = typeof only_agent === "string" ? [only_agent] : [];
  const { plain, detailed } = agentFilter.length === 0 ? selectHeads : selectHeadsOfAgent;
  const wantsDetails = rows.length === 1;
  const freeByCap = new Map<string, number>();
  const capByDemand = new Map<number, string>();
  const heads: QueueHead[] = [];
  for (const row of rows) {
    const free = yield* readFreeCapacity(row, freeByCap, capByDemand);
    if (free < 1) continue;
    const headRows = yield all(
      wantsDetails ? detailed : plain,
      Number(row["demand_id"]),
      ...agentFilter,
      Math.min(want, free),
    );
    // The statement selects the columns of QueueHead.
    for (const head of headRows)
      heads.push({ ...(head as unknown as Omit<QueueHead, "row">), row: wantsDetails ? head : null });
  }
  if (rows.length > 1) heads.sort(comparePriority);
  return capByDemand.size === 0 ? heads.slice(0, want) : limitByCaps(heads, want, freeByCap, capByDemand);
}

/** Picks resumed runs, ignoring the runner's slots and the agents' caps. */
export function* pickResumed({ storedId, row }: StoredRunner, limit: number): Work<QueueHead[]> {
  const { only_agent = null } = row;
  const headRows = yield all(selectResumed, storedId, only_agent, limit);
  // The statement selects the columns of QueueHead.
  return headRows.map((head) => ({ ...(head as unknown as Omit<QueueHead, "row">), row: null }));
}

/** How many more runs the cap of this row allows. Rows of one agent share its cap. */
function* readFreeCapacity(row: Row, freeByCap: Map<string, number>, capByDemand: Map<number, string>): Work<number> {
  const { cap, cap_agent: agent, cap_runner: capRunner } = row;
  if (typeof cap !== "number" || typeof agent !== "string") return Number.POSITIVE_INFINITY;
  const key = JSON.stringify([agent, capRunner, cap]);
  capByDemand.set(Number(row["demand_id"]), key);
  let free = freeByCap.get(key);
  if (free === undefined) {
    const [count] = yield typeof capRunner === "string"
      ? first(countBusyOn, agent, capRunner)
      : first(countBusy, agent);
    free = cap - Number(count?.["busy"]);
    freeByCap.set(key, free);
  }
  return free;
}

function limitByCaps(
  heads: QueueHead[],
  want: number,
  freeByCap: Map<string, number>,
  capByDemand: Map<number, string>,
): QueueHead[] {
  const picked: QueueHead[] = [];
  for (const head of heads) {
    if (picked.length === want) break;
    const key = capByDemand.get(head.demand_id);
    const free = key === undefined ? Number.POSITIVE_INFINITY : (freeByCap.get(key) ?? 0);
    if (free < 1) continue;
    if (key !== undefined) freeByCap.set(key, free - 1);
    picked.push(head);
  }
  return picked;
}

function comparePriority(a: QueueHead, b: QueueHead): number {
  return b.priority - a.priority || (a.run_id < b.run_id ? -1 : 1);
}
