import type { Hook } from "../../model/hook.ts";
import type { PendingFollowUp, HookPage, HookReads } from "../../model/hook-ops.ts";
import type { Delivery, StoredWebhook } from "../../model/webhook.ts";
import { toHook, toStoredWebhook } from "../ops/webhooks.ts";
import { all, first, type Row, type SqlValue, type Work } from "../query.ts";
import { fromColumn, textOrNull, toColumn } from "../text.ts";
import { countFittingRows } from "./events.ts";

const hookSizes = `select octet_length(body) as size from hooks`;
const selectHook = `select body, secret from hooks where name = ?`;
const webhookSizes = `
  select octet_length(url) + octet_length(events) + coalesce(octet_length(payload), 0)
    + coalesce(octet_length(sealed), 0) as size from webhooks`;
const selectWebhook = `select * from webhooks where name = ?`;
const selectDeliveries = `
  select deliveries.*, webhooks.name, webhooks.url, webhooks.created_by, webhooks.everyones,
    (select run_id from runs where runs.run_no = deliveries.run_no) as run_id
  from deliveries join webhooks using (webhook_no)`;
const selectDue = `
  select exists (
    select 1 from webhooks where enabled = 1 and exists (
      select 1 from deliveries where deliveries.webhook_no = webhooks.webhook_no and status = 'pending' and next_at <= ?)
  ) as deliveries, exists (select 1 from chains where status = 'pending') as chains`;
const selectChains = `
  select chains.*, runs.run_id, runs.created_by, runs.project_dir
  from chains join runs on runs.run_no = chains.parent_run_no where chains.status = 'pending'
  order by chains.parent_run_no limit ?`;

export function* readHooks(page: HookPage): Work<{ items: Hook[]; more: boolean }> {
  const { rows, more } = yield* readPage(hookSizes, `select body from hooks`, "created_by = ?", page);
  return { items: rows.map(toHook), more };
}

export function* readHook(name: string): Work<{ hook: Hook; secret: string } | null> {
  const [row] = yield first(selectHook, toColumn(name));
  return row === undefined ? null : { hook: toHook(row), secret: String(row["secret"]) };
}

export function* readWebhooks(page: HookPage): Work<{ items: StoredWebhook[]; more: boolean }> {
  const ownerCondition = "created_by = ? and everyones = 0";
  const { rows, more } = yield* readPage(webhookSizes, `select * from webhooks`, ownerCondition, page);
  return { items: rows.map(toStoredWebhook), more };
}

/** Measures the rows first, so that no more than a page of bytes is read. */
function* readPage(
  sizes: string,
  select: string,
  ownerCondition: string,
  { owner, after = "", limit }: HookPage,
): Work<{ rows: Row[]; more: boolean }> {
  const values = [toColumn(after), ...(owner === undefined ? [] : [toColumn(owner)])];
  const pageClause = `where name > ? ${owner === undefined ? "" : `and ${ownerCondition}`} order by name limit ?`;
  const measured = yield all(`${sizes} ${pageClause}`, ...values, limit + 1);
  const fitting = Math.min(countFittingRows(measured), limit);
  return { rows: yield all(`${select} ${pageClause}`, ...values, fitting), more: measured.length > fitting };
}

export function* readWebhook(name: string): Work<{ webhook: StoredWebhook; secret: string } | null> {
  const [row] = yield first(selectWebhook, toColumn(name));
  return row === undefined ? null : { webhook: toStoredWebhook(row), secret: String(row["secret"]) };
}

export function* readDelivery(
  delivery_id: string,
): Work<(Delivery & Pick<StoredWebhook, "created_by" | "everyones">) | null> {
  const [row] = yield first(`${selectDeliveries} where delivery_id = ?`, toColumn(delivery_id));
  return row === undefined ? null : toDeliveryWithOwner(row);
}

export function* readDeliveries(
  filter: Parameters<HookReads["deliveries"]>[0],
  { before, limit }: { before?: string; limit: number },
): Work<{ items: Delivery[]; next: string | null }> {
  const { webhook, run_id, status, owner } = filter;
  const conditions: [text: string, value: SqlValue][] = [];
  if (webhook !== undefined) conditions.push(["webhooks.name = ?", toColumn(webhook)]);
  if (run_id !== undefined)
    conditions.push(["deliveries.run_no = (select run_no from runs where run_id = ?)", toColumn(run_id)]);
  if (status !== undefined) conditions.push(["deliveries.status = ?", status]);
  if (owner !== undefined) conditions.push(["webhooks.created_by = ? and webhooks.everyones = 0", toColumn(owner)]);
  if (before !== undefined) conditions.push(["deliveries.delivery_no < ?", Number(before)]);
  const where = conditions.length === 0 ? "" : ` where ${conditions.map(([text]) => text).join(" and ")}`;
  const rows = yield all(
    `${selectDeliveries}${where} order by deliveries.delivery_no desc limit ?`,
    ...conditions.map(([, value]) => value),
    limit + 1,
  );
  const page = rows.slice(0, limit);
  return {
    items: page.map(toDelivery),
    next: rows.length > limit ? String(page.at(-1)?.["delivery_no"]) : null,
  };
}

export function* readTriggersDue(now: Date): Work<{ deliveries: boolean; chains: boolean }> {
  const [row] = yield first(selectDue, now.getTime());
  return { deliveries: isTrue(row?.["deliveries"]), chains: isTrue(row?.["chains"]) };
}

export function* readPendingChains(limit: number): Work<PendingFollowUp[]> {
  return (yield all(selectChains, limit)).map((row) => ({
    parent_run_id: fromColumn(String(row["run_id"])),
    created_by: fromColumn(String(row["created_by"])),
    project_dir: textOrNull(row["project_dir"]),
    agent_name: fromColumn(String(row["agent_name"])),
    // moves/chain.ts wrote this value.
    parameters: JSON.parse(String(row["parameters"])) as Record<string, unknown>,
    prompt: textOrNull(row["prompt"]),
    fault: textOrNull(row["fault"]),
  }));
}

/** The value of a condition depends on the engine. */
function isTrue(value: unknown): boolean {
  return value === 1 || value === true || value === "t";
}

function toDeliveryWithOwner(row: Row): Delivery & Pick<StoredWebhook, "created_by" | "everyones"> {
  const owner = { created_by: fromColumn(String(row["created_by"])), everyones: row["everyones"] === 1 };
  return { ...toDelivery(row), ...owner };
}

function toDelivery(row: Row): Delivery {
  const text = (name: string): string => fromColumn(String(row[name]));
  const pending = row["status"] === "pending";
  return {
    delivery_id: text("delivery_id"),
    webhook: text("name"),
    url: text("url"),
    run_id: textOrNull(row["run_id"]) ?? "",
    // Values of closed lists, written by notify and settleDelivery.
    event: String(row["event"]) as Delivery["event"],
    status: String(row["status"]) as Delivery["status"],
    at: text("at"),
    attempts: Number(row["attempts"]),
    next_attempt_at: pending ? new Date(Number(row["next_at"])).toISOString() : null,
    response_status: row["response_status"] === null ? null : Number(row["response_status"]),
    response: textOrNull(row["response"]),
    error: textOrNull(row["error"]),
    settled_at: textOrNull(row["settled_at"]),
  };
}
