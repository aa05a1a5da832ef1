import type { Poll, Poller } from "../../model/dispatch-reads.ts";
import { hasResumed, pickRuns } from "../ops/pick-runs.ts";
import { toRunnerFacts, checkRunner, getText } from "../ops/runner-row.ts";
import { isAssignedToRunner, isClaimable, statusIn } from "../moves/statuses.ts";
import { all, first, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

/** As in ../ops/orders.ts: an order to an ended attempt is no longer sent. The next acknowledgement removes it. */
const isOpen = `exists (
  select 1 from runs where runs.run_no = orders.run_no and runs.runner_id = orders.runner_id
    and runs.attempt = orders.attempt and ${statusIn("assigned", "runs.status")})`;
const hasRuns = `exists (
  select 1 from demand_matches m where m.runner_id = runners.runner_id and exists (
    select 1 from runs indexed by runs_to_claim
    where runs.demand_id = m.demand_id and ${isClaimable}))`;

/**
 * Everything an idle poll needs in one statement. `has_claimed`: the same claim got runs before, which claim-runs.ts
 * repeats.
 */
const selectPoller = `
  select runners.*, claims.claim_no as known_claim_no,
    exists (select 1 from orders where orders.runner_id = runners.runner_id and ${isOpen}) as has_orders,
    exists (
      select 1 from runs where runs.runner_id = runners.runner_id and runs.claim_no = claims.claim_no
        and ${isAssignedToRunner}
        and runs.status <> 'stopping') as has_claimed,
    ${hasRuns} as has_runs, ${hasResumed} as has_resumed
  from runners left join claims on claims.runner_id = runners.runner_id and claims.claim_id = ?2
  where runners.runner_id = ?1`;

/** Ids per statement. The last batch is padded by repeating one of its ids. */
const idsPerStatement = 200;
const selectWithWork = `
  select runner_id from runners
  where runner_id in (${Array.from({ length: idsPerStatement }, () => "?").join(", ")}) and (
    exists (select 1 from orders where orders.runner_id = runners.runner_id and ${isOpen}) or ${hasRuns} or ${hasResumed})`;

export function* readPoller(poll: Poll): Work<Poller | { conflict: "unknown_runner" | "old_epoch" }> {
  const { runner_id, claim_id, want } = poll;
  const [row] = yield first(selectPoller, toColumn(runner_id), toColumn(claim_id));
  const runner = checkRunner(row, poll);
  if (typeof runner === "string") return { conflict: runner };
  const { known_claim_no, has_orders, has_claimed, has_runs, has_resumed, only_agent, lease_until } = runner.row;
  const draining = runner.status === "draining";
  let idle = known_claim_no !== null && has_orders !== 1 && has_claimed !== 1;
  // There may be runs that this runner cannot take, because of a cap or because it takes only one agent's runs.
  if (has_resumed === 1 && !draining && poll.shortage === undefined) idle = false;
  if (idle && has_runs === 1 && want > 0 && !draining) idle = (yield* pickRuns(runner, 1)).length === 0;
  const { tags, ...facts } = toRunnerFacts(runner.row);
  return {
    ...facts,
    tags: [...tags],
    only_agent: only_agent === null ? null : getText(runner.row, "only_agent"),
    draining,
    lease_until: Number(lease_until),
    idle,
  };
}

export function* readRunnersWithWork(runner_ids: readonly string[]): Work<string[]> {
  const withWork: string[] = [];
  for (let from = 0; from < runner_ids.length; from += idsPerStatement) {
    const batch = runner_ids.slice(from, from + idsPerStatement).map((runner_id) => toColumn(runner_id));
    const padded = Array.from({ length: idsPerStatement }, (_, index) => batch[index] ?? batch[0]!);
    for (const row of yield all(selectWithWork, ...padded)) withWork.push(fromColumn(String(row["runner_id"])));
  }
  return withWork;
}
