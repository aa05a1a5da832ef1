/** What happens to a run that receivers can be notified of. Apart from the schemas: every end of a run needs it. */
export const webhookEvents = ["completed", "failed", "cancelled", "waiting", "parked"] as const;
export type WebhookEvent = (typeof webhookEvents)[number];
