/** The events that webhooks can be notified of. Not in webhook.ts, so that ending a run does not load zod. */
export const webhookEvents = ["completed", "failed", "cancelled", "waiting", "parked"] as const;
export type WebhookEvent = (typeof webhookEvents)[number];
