import { type WebhookEvent, webhookEvents } from "../../model/webhook-events.ts";
import { write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun } from "./stored-run.ts";

/** How long a delivery is retried. */
export const deliveryWindowMs = 24 * 60 * 60 * 1000;

/** `events` is a JSON list, so each name is in quotes. The statement returns no rows, so on PostgreSQL nothing waits for it. */
const insertDeliveries = `
  insert into deliveries (delivery_id, webhook_no, run_no, event, at, body, status, attempts, next_at, give_up_at)
  select runs.run_id || '.' || ? || '.' || webhooks.webhook_no, webhooks.webhook_no, runs.run_no, ?, ?, ?, 'pending', 0, ?, ?
  from runs cross join webhooks
  where runs.run_no = ? and webhooks.enabled = 1 and webhooks.events like ?
    and (webhooks.everyones = 1 or webhooks.created_by = runs.created_by)
    and (webhooks.scope = 'all' or exists (
      select 1 from run_webhooks where run_webhooks.run_no = runs.run_no and run_webhooks.name = webhooks.name))`;

/** Whether webhooks can subscribe to this status. */
export function isWebhookEvent(status: string): status is WebhookEvent {
  return (webhookEvents as readonly string[]).includes(status);
}

/**
 * Stores a delivery for each subscribed webhook, in the transaction of the change itself. `state` holds the run's fields at
 * the time of the event, because the run may have changed again when the delivery is sent.
 */
export function* notify(
  tx: Transaction,
  run: Pick<StoredRun, "run_no" | "last_seq">,
  event: WebhookEvent,
  at: string,
  state: Readonly<Record<string, unknown>>,
): Work<void> {
  const now = tx.now.getTime();
  yield write(
    insertDeliveries,
    String(run.last_seq),
    event,
    toColumn(at),
    JSON.stringify({ status: event, ...state }),
    now,
    now + deliveryWindowMs,
    run.run_no,
    `%"${event}"%`,
  );
}
