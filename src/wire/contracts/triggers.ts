import * as z from "zod";
import * as hook from "../../model/hook.ts";
import * as webhook from "../../model/webhook.ts";
import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

const refusedCreation = { description: "The name is already taken, or the caller has reached the limit" };

/** Hooks, webhooks and deliveries. */
export const triggerContracts = {
  "GET /hooks": {
    id: "listHooks",
    summary: "List hooks without their secrets, by name",
    query: schemas.fullPageQuerySchema,
    responses: ok(
      "A page of the caller's own hooks; for an admin, of all hooks",
      schemas.createPageSchema(hook.hookSchema),
    ),
  },
  "POST /hooks": {
    id: "createHook",
    summary: "Create a hook: an address that submits a run for each signed request",
    body: hook.newHookSchema,
    responses: {
      201: { description: "The hook with its secret, which is shown only once", schema: hook.createdHookSchema },
      409: refusedCreation,
    },
  },
  "GET /hooks/{name}": { id: "getHook", summary: "Get a hook", responses: ok("The hook", hook.hookSchema) },
  "PATCH /hooks/{name}": {
    id: "changeHook",
    summary: "Change a hook, or give it a new secret",
    body: hook.hookChangesSchema,
    responses: ok("The hook; with its secret if that changed", hook.createdHookSchema),
  },
  "DELETE /hooks/{name}": {
    id: "removeHook",
    summary: "Remove a hook; further deliveries to it are refused",
    responses: { 204: { description: "Removed" } },
  },
  "POST /hooks/{name}": {
    id: "receiveDelivery",
    summary: "Send a delivery to a hook; its signature authenticates the sender",
    headers: z.object({
      "drover-signature": z.string().max(1000).optional(),
      "x-hub-signature-256": z.string().max(200).optional(),
      "x-github-delivery": z.string().max(200).optional(),
      "x-github-event": z.string().max(200).optional(),
    }),
    takesBytes: true,
    responses: {
      202: { description: "Accepted, with the run it created", schema: hook.hookResponseSchema },
      401: { description: "No such hook, or the signature is missing, wrong or too old" },
      409: { description: "This delivery was already received" },
      413: { description: "The body is too large" },
      429: { description: "Too many deliveries; retry after the time in Retry-After" },
    },
  },
  "GET /webhooks": {
    id: "listWebhooks",
    summary: "List webhooks without their secrets, by name",
    query: schemas.fullPageQuerySchema,
    responses: ok(
      "A page of the caller's own webhooks; for an admin, of all webhooks",
      schemas.createPageSchema(webhook.webhookSchema),
    ),
  },
  "POST /webhooks": {
    id: "createWebhook",
    summary: "Create a webhook: an address that is notified about runs",
    body: webhook.newWebhookSchema,
    responses: {
      201: {
        description: "The webhook with its secret, which is shown only once",
        schema: webhook.createdWebhookSchema,
      },
      409: refusedCreation,
    },
  },
  "PATCH /webhooks/{name}": {
    id: "changeWebhook",
    summary: "Change a webhook, or give it a new secret",
    body: webhook.webhookChangesSchema,
    responses: ok("The webhook; with its secret if that changed", webhook.createdWebhookSchema),
  },
  "DELETE /webhooks/{name}": {
    id: "removeWebhook",
    summary: "Remove a webhook and its deliveries",
    responses: { 204: { description: "Removed" } },
  },
  "GET /deliveries": {
    id: "listDeliveries",
    summary: "List deliveries to webhooks, newest first",
    query: schemas.deliveriesQuerySchema,
    responses: ok("A page of deliveries", schemas.createPageSchema(webhook.deliverySchema)),
  },
  "POST /deliveries/{delivery_id}/redeliver": {
    id: "redeliver",
    summary: "Send a delivery again now, and retry it for up to a day",
    responses: ok("The delivery", webhook.deliverySchema),
  },
} as const satisfies Record<string, Contract>;
