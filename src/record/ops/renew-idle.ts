import type { DispatchResult, RenewIdle } from "../../model/dispatch-ops.ts";
import { type Work, write } from "../query.ts";
import { isAssignedToRunner } from "../moves/statuses.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

/** Ids per statement. The last batch is padded by repeating one of its ids. */
const idsPerStatement = 100;

const renew = `
  update runners set lease_until = ?, last_seen_at = ?
  where runner_id in (${Array.from({ length: idsPerStatement }, () => "?").join(", ")}) and status <> 'lost' and not exists (
    select 1 from runs where runs.runner_id = runners.runner_id and ${isAssignedToRunner})`;

export function* renewIdle(tx: Transaction, { runner_ids, lease_ms }: RenewIdle): Work<DispatchResult> {
  const now = tx.now.getTime();
  for (let from = 0; from < runner_ids.length; from += idsPerStatement) {
    const batch = runner_ids.slice(from, from + idsPerStatement).map((runner_id) => toColumn(runner_id));
    const padded = Array.from({ length: idsPerStatement }, (_, index) => batch[index] ?? batch[0]!);
    yield write(renew, now + lease_ms, now, ...padded);
  }
  return { ok: true, op: "renew_idle" };
}
