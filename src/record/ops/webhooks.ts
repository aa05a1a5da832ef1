import type { Hook } from "../../model/hook.ts";
import {
  type DeleteHook,
  type DeleteWebhook,
  maxPerOwner,
  type PutHook,
  type PutWebhook,
  type HookResult,
} from "../../model/hook-ops.ts";
import type { StoredWebhook } from "../../model/webhook.ts";
import { first, type Row, write, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

const selectExisting = {
  hooks: `select 1 from hooks where name = ?`,
  webhooks: `select 1 from webhooks where name = ?`,
};
const countByOwner = {
  hooks: `select count(*) as count from hooks where created_by = ?`,
  webhooks: `select count(*) as count from webhooks where created_by = ?`,
};
const insertHook = `insert into hooks (name, created_by, body, secret) values (?, ?, ?, ?)`;
const updateHook = `update hooks set body = ?, secret = coalesce(?, secret) where name = ?`;
const deleteHookKeys = `delete from hook_keys where hook = ?`;
const removeHook = `delete from hooks where name = ? returning name`;
const insertWebhook = `
  insert into webhooks (name, created_by, everyones, url, events, scope, payload, enabled, sealed, secret, created_at)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const updateWebhook = `
  update webhooks set url = ?, events = ?, scope = ?, payload = ?, enabled = ?, sealed = ?, secret = coalesce(?, secret)
  where name = ?`;
const removeDeliveries = `
  delete from deliveries where webhook_no = (select webhook_no from webhooks where name = ?)`;
const removeWebhook = `delete from webhooks where name = ? returning name`;

export function* putHook({ hook, create, ...op }: PutHook): Work<HookResult> {
  const secret = op.secret ?? null;
  const name = toColumn(hook.name);
  const [existing] = yield first(selectExisting.hooks, name);
  if (create !== (existing === undefined)) return { ok: false, conflict: create ? "exists" : "not_found" };
  if (create) {
    const owner = toColumn(hook.created_by);
    if (yield* isFull("hooks", owner)) return { ok: false, conflict: "too_many" };
    yield write(insertHook, name, owner, JSON.stringify(hook), secret);
  } else yield write(updateHook, JSON.stringify(hook), secret, name);
  return { ok: true, op: "put_hook" };
}

/**
 * Also deletes the keys of its deliveries: a new hook of the same name has another secret and therefore other signatures.
 */
export function* deleteHook({ name }: DeleteHook): Work<HookResult> {
  const [deleted] = yield first(removeHook, toColumn(name));
  if (deleted === undefined) return { ok: false, conflict: "not_found" };
  yield write(deleteHookKeys, toColumn(name));
  return { ok: true, op: "delete_hook" };
}

export function* putWebhook({ webhook, create, ...op }: PutWebhook): Work<HookResult> {
  const secret = op.secret ?? null;
  const name = toColumn(webhook.name);
  const [existing] = yield first(selectExisting.webhooks, name);
  if (create !== (existing === undefined)) return { ok: false, conflict: create ? "exists" : "not_found" };
  const url = toColumn(webhook.url);
  const events = JSON.stringify(webhook.events);
  const payload = webhook.payload === undefined || webhook.payload === null ? null : JSON.stringify(webhook.payload);
  const enabled = webhook.enabled ? 1 : 0;
  const { scope, everyones, created_by, created_at, sealed = null } = webhook;
  const columns = [url, events, scope, payload, enabled, sealed, secret] as const;
  if (!create) yield write(updateWebhook, ...columns, name);
  else {
    if (yield* isFull("webhooks", toColumn(created_by))) return { ok: false, conflict: "too_many" };
    const owner = [toColumn(created_by), everyones ? 1 : 0] as const;
    yield write(insertWebhook, name, ...owner, ...columns, toColumn(created_at));
  }
  return { ok: true, op: "put_webhook" };
}

export function* deleteWebhook({ name }: DeleteWebhook): Work<HookResult> {
  yield write(removeDeliveries, toColumn(name));
  const [deleted] = yield first(removeWebhook, toColumn(name));
  return deleted === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "delete_webhook" };
}

function* isFull(table: keyof typeof countByOwner, owner: string): Work<boolean> {
  const [row] = yield first(countByOwner[table], owner);
  return Number(row?.["count"]) >= maxPerOwner;
}

export function toHook(row: Row): Hook {
  // putHook wrote this value from a Hook.
  return JSON.parse(String(row["body"])) as Hook;
}

export function toStoredWebhook(row: Row): StoredWebhook {
  const text = (name: string): string => fromColumn(String(row[name]));
  return {
    name: text("name"),
    url: text("url"),
    // putWebhook wrote both values from a webhook.
    events: JSON.parse(String(row["events"])) as StoredWebhook["events"],
    scope: String(row["scope"]) as StoredWebhook["scope"],
    payload: row["payload"] === null ? null : JSON.parse(String(row["payload"])),
    enabled: row["enabled"] === 1,
    created_by: text("created_by"),
    everyones: row["everyones"] === 1,
    created_at: text("created_at"),
    ...(row["sealed"] === null ? {} : { sealed: String(row["sealed"]) }),
  };
}
