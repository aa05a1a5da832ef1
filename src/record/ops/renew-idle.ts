import type { DispatchResult, RenewIdle } from "../../model/dispatch-ops.ts";
import { batchIds, idPlaceholders } from "../id-batches.ts";
import { type Work, write } from "../query.ts";
import { isAssignedToRunner } from "../moves/statuses.ts";
import type { Transaction } from "../transaction.ts";

const renew = `
  update runners set lease_until = ?, last_seen_at = ?
  where runner_id in (${idPlaceholders}) and status <> 'lost' and not exists (
    select 1 from runs where runs.runner_id = runners.runner_id and ${isAssignedToRunner})`;

export function* renewIdle(tx: Transaction, { runner_ids, lease_ms }: RenewIdle): Work<DispatchResult> {
  const now = tx.now.getTime();
  for (const batch of batchIds(runner_ids)) yield write(renew, now + lease_ms, now, ...batch);
  return { ok: true, op: "renew_idle" };
}
