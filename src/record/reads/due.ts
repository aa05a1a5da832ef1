import type { Due } from "../../model/dispatch-reads.ts";
import { keptLostMs } from "../ops/rescue.ts";
import { first, type Work } from "../query.ts";

/** What ops/rescue.ts looks for; the conditions are word for word those of the indexes. */
const selectDue = `
  select exists (select 1 from runners where lease_until < ?1 and status <> 'lost')
    or exists (
      select 1 from runners indexed by runners_lost cross join runs indexed by runs_by_runner
      where runners.status = 'lost' and runs.runner_id = runners.runner_id
        and runs.agent_rev_id is not null and runs.status in ('claimed', 'running', 'waiting', 'stopping'))
    or exists (select 1 from demands where unmatched_since is not null and unmatched_since <= ?2)
    or exists (select 1 from runners where status = 'lost' and last_seen_at < ?3) as due`;
/** Only PostgreSQL's record has this column. */
const selectJudged = `select judged_at from store`;

export function* readDue({ at, unmatched_ms, judged_within_ms }: Due): Work<boolean> {
  const [found] = yield first(selectDue, at, at - unmatched_ms, at - keptLostMs);
  if (found?.["due"] !== 0) return true;
  if (judged_within_ms === undefined) return false;
  const [judged] = yield first(selectJudged);
  return Number(judged?.["judged_at"] ?? 0) < at - judged_within_ms;
}
