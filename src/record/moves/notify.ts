import { type WebhookEvent, webhookEvents } from "../../model/webhook-events.ts";
import { write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun } from "./stored-run.ts";

/** How long a delivery is tried. */
export const deliverForMs = 24 * 60 * 60 * 1000;

/** `events` is a JSON list: each stands in quotes. Answers nothing, so nobody waits for it. */
const insertDeliveries = `
  insert into deliveries (delivery_id, webhook_no, run_no, event, at, body, status, attempts, next_at, give_up_at)
  select runs.run_id || '.' || ? || '.' || webhooks.webhook_no, webhooks.webhook_no, runs.run_no, ?, ?, ?, 'pending', 0, ?, ?
  from runs cross join webhooks
  where runs.run_no = ? and webhooks.enabled = 1 and webhooks.events like ?
    and (webhooks.everyones = 1 or webhooks.created_by = runs.created_by)
    and (webhooks.scope = 'all' or exists (
      select 1 from run_webhooks where run_webhooks.run_no = runs.run_no and run_webhooks.name = webhooks.name))`;

/** Whether receivers can ask to be notified of it. */
export function isNotified(status: string): status is WebhookEvent {
  return (webhookEvents as readonly string[]).includes(status);
}

/**
 * Writes a delivery for each webhook that wants to know, in the transaction of what it is about. `state` are the fields of
 * the run that the event is about: the run may have moved on when it is sent.
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
    now + deliverForMs,
    run.run_no,
    `%"${event}"%`,
  );
}
