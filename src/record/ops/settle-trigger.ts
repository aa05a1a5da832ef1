import type { RunEvent } from "../../model/event.ts";
import type { CreateRun } from "../../model/store.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";

type Trigger = NonNullable<CreateRun["settles"]>;

const selectKey = `select 1 from hook_keys where hook = ? and key = ?`;
const insertKey = `insert into hook_keys (hook, key, until) values (?, ?, ?)`;
const selectChain = `
  select chains.status from runs join chains on chains.parent_run_no = runs.run_no where runs.run_id = ?`;
const settleChain = `
  update chains set status = ?, child_run_id = ?
  where parent_run_no = (select run_no from runs where run_id = ?) and status = 'pending'`;
const selectWebhook = `select 1 from webhooks where name = ?`;
const insertName = `insert into run_webhooks (run_no, name) values (?, ?)`;

/** Whether this trigger has already created a run. */
export function* isTriggerSettled(trigger: Trigger): Work<boolean> {
  if ("chain_of" in trigger) {
    const [row] = yield first(selectChain, toColumn(trigger.chain_of));
    return row?.["status"] !== "pending";
  }
  for (const key of trigger.keys) {
    const [existing] = yield first(selectKey, toColumn(trigger.hook), toColumn(key));
    if (existing !== undefined) return true;
  }
  return false;
}

export function* settleTrigger(
  trigger: Trigger,
  run_id: string,
  status: "submitted" | "refused" = "submitted",
): Work<void> {
  if ("chain_of" in trigger) yield write(settleChain, status, toColumn(run_id), toColumn(trigger.chain_of));
  else for (const key of trigger.keys) yield write(insertKey, toColumn(trigger.hook), toColumn(key), trigger.until);
}

/** Returns an event for each webhook that the run's agent names but nobody has registered. */
export function* findUnknownWebhooks(names: readonly string[]): Work<RunEvent[]> {
  const events: RunEvent[] = [];
  for (const name of new Set(names)) {
    const [existing] = yield first(selectWebhook, toColumn(name));
    if (existing === undefined) events.push({ type: "system", subtype: "unknown_webhook", data: { webhook: name } });
  }
  return events;
}

export function* storeWebhookNames(run_no: number, names: readonly string[]): Work<void> {
  for (const name of new Set(names)) yield write(insertName, run_no, toColumn(name));
}
