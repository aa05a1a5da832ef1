import * as z from "zod";
import { webhookEvents } from "./webhook-events.ts";
import { secretSchema, triggerNameSchema } from "./hook.ts";

export const deliveryStatuses = ["pending", "delivered", "failed"] as const;

const definition = {
  url: z.string().min(1).max(2048),
  events: z
    .array(z.enum(webhookEvents))
    .min(1)
    .refine((events) => new Set(events).size === events.length, "must not repeat an event"),
  /** `all`: every run that its owner can see. `named`: runs whose agent or request names this webhook. */
  scope: z.enum(["all", "named"]),
  /** Replaces Drover's default body. JSON whose strings are templates over the default body. */
  payload: z.unknown(),
  enabled: z.boolean(),
};

/** An address that Drover notifies about runs. */
export const webhookSchema = z.object({
  name: z.string(),
  ...definition,
  created_by: z.string(),
  /** Created by an admin: covers the runs of all users. */
  everyones: z.boolean(),
  created_at: z.string(),
});
export type Webhook = z.infer<typeof webhookSchema>;

/** As stored. If `sealed` is set, it holds the encrypted originals, and `url` and `payload` have marks in place of secrets. */
export interface StoredWebhook extends Webhook {
  sealed?: string;
}

const payload = z.unknown().refine((value) => (JSON.stringify(value)?.length ?? 0) <= 16_384, "at most 16 KB");

export const newWebhookSchema = z.strictObject({
  name: triggerNameSchema,
  url: definition.url,
  events: definition.events.default(["completed", "failed"]),
  scope: definition.scope.default("all"),
  payload: payload.optional(),
  enabled: definition.enabled.default(true),
  secret: secretSchema.optional(),
});
export const webhookChangesSchema = z
  .strictObject({ ...definition, payload, secret: secretSchema, rotate_secret: z.literal(true) })
  .partial();
export const createdWebhookSchema = webhookSchema.extend({ secret: z.string().optional() });

/** One notification and its outcome. */
export const deliverySchema = z.object({
  /** The same in every attempt, so that receivers can recognize repeated deliveries. */
  delivery_id: z.string(),
  webhook: z.string(),
  url: z.string(),
  run_id: z.string(),
  event: z.enum(webhookEvents),
  at: z.string(),
  status: z.enum(deliveryStatuses),
  attempts: z.int(),
  /** When the next attempt is due. null once the delivery is settled. */
  next_attempt_at: z.string().nullable(),
  /** The HTTP status of the last attempt. */
  response_status: z.int().nullable(),
  /** The first bytes of the last response. */
  response: z.string().nullable(),
  error: z.string().nullable(),
  settled_at: z.string().nullable(),
});
export type Delivery = z.infer<typeof deliverySchema>;

/** Names of webhooks with scope `named`, listed by an agent or a run. */
export const webhookNamesSchema = z.array(triggerNameSchema).max(20);
