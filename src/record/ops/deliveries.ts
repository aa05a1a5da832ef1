import type { ClaimDeliveries, ClaimedDelivery, Redeliver, SettleDelivery, HookResult } from "../../model/hook-ops.ts";
import { deliveryWindowMs } from "../moves/notify.ts";
import { all, first, type Row, write, type Work } from "../query.ts";
import { readRun } from "../reads/runs.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

const selectDueWebhooks = `
  select webhook_no, name, created_by, url, payload, sealed, secret from webhooks
  where enabled = 1 and exists (
    select 1 from deliveries where deliveries.webhook_no = webhooks.webhook_no and status = 'pending' and next_at <= ?)
  order by webhook_no`;
const selectDue = `
  select delivery_no, delivery_id, event, at, body, attempts,
    (select run_id from runs where runs.run_no = deliveries.run_no) as run_id
  from deliveries where webhook_no = ? and status = 'pending' and next_at <= ? order by next_at limit ?`;
const leaseDelivery = `update deliveries set attempts = attempts + 1, next_at = ? where delivery_no = ?`;
const selectDelivery = `select delivery_no, status, attempts, give_up_at from deliveries where delivery_id = ?`;
const updateDelivery = `
  update deliveries set status = ?, next_at = ?, response_status = ?, response = ?, error = ?, settled_at = ?
  where delivery_no = ?`;
const resetDelivery = `
  update deliveries set status = 'pending', next_at = ?, give_up_at = ?, settled_at = null
  where delivery_id = ? returning delivery_no`;

export function* claimDeliveries(tx: Transaction, op: ClaimDeliveries): Work<HookResult> {
  const now = tx.now.getTime();
  const deliveries: ClaimedDelivery[] = [];
  for (const webhook of yield all(selectDueWebhooks, now)) {
    if (deliveries.length >= op.limit) break;
    const owner = fromColumn(String(webhook["created_by"]));
    const ownerCount = (op.in_progress ?? []).filter((name) => name === owner).length + countByOwner(deliveries, owner);
    const maxCount = Math.min(
      op.max_per_webhook,
      op.limit - deliveries.length,
      (op.max_per_owner ?? op.limit) - ownerCount,
    );
    if (maxCount <= 0) continue;
    if (op.busy.includes(fromColumn(String(webhook["name"])))) continue;
    for (const row of yield all(selectDue, Number(webhook["webhook_no"]), now, maxCount)) {
      yield write(leaseDelivery, now + op.lease_ms, Number(row["delivery_no"]));
      deliveries.push(yield* buildClaimedDelivery(webhook, row));
    }
  }
  return { ok: true, op: "claim_deliveries", deliveries };
}

function countByOwner(deliveries: readonly ClaimedDelivery[], owner: string): number {
  return deliveries.filter((delivery) => delivery.owner === owner).length;
}

function* buildClaimedDelivery(webhook: Row, row: Row): Work<ClaimedDelivery> {
  const text = (value: unknown): string => fromColumn(String(value));
  return {
    delivery_id: text(row["delivery_id"]),
    attempt: Number(row["attempts"]) + 1,
    webhook: text(webhook["name"]),
    owner: text(webhook["created_by"]),
    url: text(webhook["url"]),
    secret: text(webhook["secret"]),
    sealed: webhook["sealed"] === null ? null : String(webhook["sealed"]),
    payload: webhook["payload"] === null ? null : JSON.parse(String(webhook["payload"])),
    // notify wrote both values.
    event: String(row["event"]) as ClaimedDelivery["event"],
    state: JSON.parse(String(row["body"])) as ClaimedDelivery["state"],
    at: text(row["at"]),
    run: row["run_id"] === null ? null : yield* readRun(text(row["run_id"])),
  };
}

export function* settleDelivery(tx: Transaction, op: SettleDelivery): Work<HookResult> {
  const [row] = yield first(selectDelivery, toColumn(op.delivery_id));
  if (row === undefined) return { ok: false, conflict: "not_found" };
  if (row["status"] !== "pending" || row["attempts"] !== op.attempt) return { ok: false, conflict: "stale" };
  const { outcome } = op;
  const now = tx.now.getTime();
  const next = outcome.delivered || outcome.retry_in_ms === null ? null : now + Math.round(outcome.retry_in_ms);
  const status =
    next !== null && next <= Number(row["give_up_at"]) ? "pending" : outcome.delivered ? "delivered" : "failed";
  yield write(
    updateDelivery,
    status,
    next ?? now,
    op.response_status,
    toColumn(op.response),
    outcome.delivered ? null : toColumn(outcome.error),
    status === "pending" ? null : tx.now.toISOString(),
    Number(row["delivery_no"]),
  );
  return { ok: true, op: "settle_delivery", status };
}

export function* redeliver(tx: Transaction, { delivery_id }: Redeliver): Work<HookResult> {
  const now = tx.now.getTime();
  const [updated] = yield first(resetDelivery, now, now + deliveryWindowMs, toColumn(delivery_id));
  return updated === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "redeliver" };
}
