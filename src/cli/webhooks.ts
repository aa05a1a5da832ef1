import { type Delivery, type Webhook, deliveryStatuses } from "../model/webhook.ts";
import { type WebhookEvent, webhookEvents } from "../model/webhook-events.ts";
import type { ApiClient } from "../wire/client.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { connectOrFail } from "./connect.ts";
import { findOnlyMatch, findRunId, newestKeyword } from "./find-id.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readList, readLimit, readText, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { type Cell, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const webhooksList: CommandSpec = {
  name: "webhooks list",
  summary: "list webhooks; secrets are never shown",
  placeholders: "",
  arity: [0, 0],
  examples: [["drover webhooks list", "your webhooks, or all webhooks for an admin"]],
  options: {},
  async run(input) {
    const { items } = await (await connectOrFail(input)).webhooks.list();
    if (input.options["json"]) for (const webhook of items) write(1, toJsonLine(webhook));
    else writeTable(["NAME", "EVENTS", "SCOPE", "STATE", "OWNER", "URL"], items.map(toCells));
    return 0;
  },
};

export const webhooksAdd: CommandSpec = {
  name: "webhooks add",
  summary: "add a URL to notify about runs; prints the webhook's secret once",
  placeholders: "NAME URL",
  arity: [2, 2],
  examples: [
    ["drover webhooks add ci https://ci.example/drover", "for every run that completes or fails"],
    [
      `drover webhooks add chat https://chat.example/in --event failed --payload '{"text":"{{/run/agent_name}} failed"}'`,
      "in the format of the receiver",
    ],
  ],
  options: {
    event: {
      placeholder: "E",
      repeat: true,
      description: `notify about this event: ${webhookEvents.join(", ")} (repeatable; default: completed and failed)`,
    },
    named: { description: "notify only about runs whose agent or request names this webhook" },
    payload: {
      placeholder: "JSON",
      description: "the body to send; {{/pointer}} inserts a value from Drover's default body",
    },
  },
  run: addWebhook,
};

export const webhooksRotate: CommandSpec = {
  name: "webhooks rotate",
  summary: "replace a webhook's secret and print the new one once; it signs deliveries from now on",
  placeholders: "NAME",
  arity: [1, 1],
  examples: [["drover webhooks rotate ci", "prints the new secret; give it to the receiver"]],
  options: {},
  async run(input) {
    const client = await connectOrFail(input);
    const webhook = await client.webhooks.change(input.positionals[0]!, { rotate_secret: true });
    write(1, input.options["json"] ? toJsonLine(webhook) : `${webhook.secret}\n`);
    return 0;
  },
};

export const webhooksRemove: CommandSpec = {
  name: "webhooks remove",
  summary: "delete a webhook and its deliveries",
  placeholders: "NAME",
  arity: [1, 1],
  examples: [["drover webhooks remove ci", "pending deliveries are dropped"]],
  options: {},
  async run(input) {
    await (await connectOrFail(input)).webhooks.remove(input.positionals[0]!);
    return 0;
  },
};

export const webhooksDeliveries: CommandSpec = {
  name: "webhooks deliveries",
  summary: "list deliveries and the receivers' responses, newest first",
  placeholders: "[NAME]",
  arity: [0, 1],
  examples: [
    ["drover webhooks deliveries", "for all webhooks"],
    ["drover webhooks deliveries ci --status failed", "failed deliveries of one webhook"],
  ],
  options: {
    status: { placeholder: "S", choices: deliveryStatuses, description: `one of ${deliveryStatuses.join(", ")}` },
    run: { placeholder: "RUN", description: "only deliveries about this run" },
    limit: { placeholder: "N", description: "page size (default: 50, at most 1000)" },
    cursor: { placeholder: "C", description: "start at the cursor that the previous page printed" },
  },
  run: listDeliveries,
};

export const webhooksRedeliver: CommandSpec = {
  name: "webhooks redeliver",
  summary: "send deliveries again now, and retry them for up to a day",
  placeholders: "DELIVERY...",
  arity: [1, Infinity],
  examples: [
    ["drover webhooks redeliver 2f1c8ae0", "the end of an id from drover webhooks deliveries"],
    ["drover webhooks redeliver last", "the newest delivery"],
  ],
  options: {},
  async run(input) {
    const client = await connectOrFail(input);
    const ids: string[] = [];
    // Find all deliveries before the first is sent, so that a wrong id sends nothing.
    for (const query of input.positionals) ids.push(await findDeliveryId(client, query));
    for (const id of ids) {
      const delivery = await client.webhooks.redeliver(id);
      write(1, input.options["json"] ? toJsonLine(delivery) : `${delivery.delivery_id}\n`);
    }
    return 0;
  },
};

/** Finds a delivery among the newest 1,000, unless the id is complete. */
async function findDeliveryId(client: ApiClient, query: string): Promise<string> {
  if (query.length >= 36) return query;
  const { items } = await client.webhooks.deliveries({ limit: 1000 });
  const ids = items.map(({ delivery_id }) => delivery_id);
  // Deliveries have no owner: `last` is the newest delivery of all webhooks that the caller sees.
  return query === newestKeyword && ids[0] !== undefined ? ids[0] : findOnlyMatch("delivery", query, ids);
}

async function addWebhook(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const events = readList(options, "event").map(readEvent);
  const payload = readText(options, "payload");
  const webhook = await (
    await connectOrFail(input)
  ).webhooks.add({
    name: positionals[0]!,
    url: positionals[1]!,
    ...(events.length === 0 ? {} : { events }),
    ...(options["named"] ? { scope: "named" as const } : {}),
    ...(payload === undefined ? {} : { payload: readPayload(payload) }),
  });
  write(1, options["json"] ? toJsonLine(webhook) : `${webhook.secret}\n`);
  if (!options["quiet"]) write(2, "Deliveries are signed with this secret. It is not shown again.\n");
  return 0;
}

function readEvent(value: string): WebhookEvent {
  const match = webhookEvents.find((event) => event === value);
  if (match !== undefined) return match;
  throw usageError(`--event ${value} is not one of ${webhookEvents.join(", ")}.`, "webhooks add", "--event");
}

function readPayload(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw usageError(`--payload is not valid JSON: ${error.message}.`, "webhooks add", "--payload");
  }
}

async function listDeliveries(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const limit = readLimit(options, "webhooks deliveries");
  const value = readText(options, "status");
  const status = deliveryStatuses.find((known) => known === value);
  if (value !== undefined && status === undefined)
    throw usageError(
      `--status ${value} is not one of ${deliveryStatuses.join(", ")}.`,
      "webhooks deliveries",
      "--status",
    );
  const [webhook, run, cursor] = [positionals[0], readText(options, "run"), readText(options, "cursor")];
  const client = await connectOrFail(input);
  const run_id = run === undefined ? undefined : await findRunId(client, run);
  const page = await client.webhooks.deliveries({
    limit,
    ...(webhook === undefined ? {} : { webhook }),
    ...(run_id === undefined ? {} : { run_id }),
    ...(status === undefined ? {} : { status }),
    ...(cursor === undefined ? {} : { cursor }),
  });
  if (options["json"]) for (const delivery of page.items) write(1, toJsonLine(delivery));
  else
    writeTable(
      ["WEBHOOK", "EVENT", "STATUS", "TRIES", "ANSWER", "NEXT", "AGE", "DELIVERY"],
      page.items.map((delivery) => toDeliveryCells(delivery, new Date())),
    );
  if (page.next_cursor && !options["quiet"])
    write(
      2,
      `More: ${findDroverCommand()} webhooks deliveries --limit ${limit} --cursor ${quoteForShell(page.next_cursor)}\n`,
    );
  return 0;
}

function toDeliveryCells(delivery: Delivery, now: Date): Cell[] {
  const { webhook, event, status, attempts, response_status, error, next_attempt_at, at, delivery_id } = delivery;
  const response = response_status === null ? (error ?? "-") : String(response_status);
  return [
    webhook,
    event,
    toStatusCell(status),
    String(attempts),
    response,
    toTimeCell(next_attempt_at, now),
    toTimeCell(at, now),
    { id: delivery_id },
  ];
}

function toCells({ name, url, events, scope, enabled, created_by }: Webhook): Cell[] {
  return [name, events.join(","), scope, toStatusCell(enabled ? "enabled" : "disabled"), created_by, url];
}
