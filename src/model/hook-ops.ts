import type { Hook } from "./hook.ts";
import type { Run } from "./run.ts";
import type { WebhookEvent } from "./webhook-events.ts";
import type { Delivery, StoredWebhook } from "./webhook.ts";

/** How many hooks one owner may have, and how many webhooks. */
export const maxPerOwner = 1000;

/** The store operations for hooks, webhooks and chains. The caller encrypts each `secret` before it reaches the store. */
export type HookOp =
  | PutHook
  | DeleteHook
  | PutWebhook
  | DeleteWebhook
  | ClaimDeliveries
  | SettleDelivery
  | Redeliver
  | RefuseChain;

/**
 * If `create` is set, an existing name is refused with `exists`, and an owner at the limit with `too_many`. Otherwise an
 * unknown name is refused with `not_found`, and the secret changes only if it is given.
 */
export interface PutHook {
  op: "put_hook";
  hook: Hook;
  secret?: string;
  create: boolean;
}

export interface DeleteHook {
  op: "delete_hook";
  name: string;
}

export interface PutWebhook {
  op: "put_webhook";
  webhook: StoredWebhook;
  secret?: string;
  create: boolean;
}

/** Deletes a webhook and its deliveries. */
export interface DeleteWebhook {
  op: "delete_webhook";
  name: string;
}

/**
 * Leases due deliveries, each to one caller for `lease_ms`. A delivery that is not settled by then counts as a failed
 * attempt.
 */
export interface ClaimDeliveries {
  op: "claim_deliveries";
  limit: number;
  lease_ms: number;
  /** Maximum per webhook. Webhooks in `busy` get none, so that a slow receiver does not delay the others. */
  max_per_webhook: number;
  busy: readonly string[];
  /** Maximum per owner, including the deliveries in `in_progress`, so that one user's receivers do not delay everyone's. */
  max_per_owner?: number;
  /** The owners of deliveries in progress, one entry each. */
  in_progress?: readonly string[];
}

/** Settles a delivery attempt. Only its holder may do so; anybody else gets `stale`. */
export interface SettleDelivery {
  op: "settle_delivery";
  delivery_id: string;
  attempt: number;
  /** `retry_in_ms` is the delay before the next attempt. null gives up, and so do attempts after the delivery's 24 hours. */
  outcome: { delivered: true } | { delivered: false; error: string; retry_in_ms: number | null };
  response_status: number | null;
  response: string | null;
}

/** Makes a delivery due now and retries it for another 24 hours. */
export interface Redeliver {
  op: "redeliver";
  delivery_id: string;
}

/** Records that the next run of a chain cannot be submitted, as a child run that failed with `refused`. */
export interface RefuseChain {
  op: "refuse_chain";
  parent_run_id: string;
  run: Run;
  why: string;
}

export type HookResult =
  | { ok: true; op: "put_hook" }
  | { ok: true; op: "delete_hook" }
  | { ok: true; op: "put_webhook" }
  | { ok: true; op: "delete_webhook" }
  | { ok: true; op: "claim_deliveries"; deliveries: ClaimedDelivery[] }
  | { ok: true; op: "settle_delivery"; status: Delivery["status"] }
  | { ok: true; op: "redeliver" }
  | { ok: true; op: "refuse_chain" }
  | { ok: false; conflict: "exists" | "too_many" | "not_found" | "stale" | "repeated" };

export interface ClaimedDelivery {
  delivery_id: string;
  attempt: number;
  webhook: string;
  owner: string;
  url: string;
  /** Encrypted. */
  secret: string;
  payload: unknown;
  /** The original address and payload, encrypted, if they contain secrets. */
  sealed: string | null;
  event: WebhookEvent;
  at: string;
  /** The run's fields at the time of the event. */
  state: Partial<Run>;
  /** The run as it is now. null if it was removed. */
  run: Run | null;
}

/** A run that follows a finished run and has not been created yet. */
export interface PendingFollowUp {
  parent_run_id: string;
  created_by: string;
  project_dir: string | null;
  agent_name: string;
  parameters: Record<string, unknown>;
  prompt: string | null;
  /** Why it cannot be created. */
  fault: string | null;
}

export interface HookPage {
  owner?: string;
  after?: string;
  limit: number;
}

export interface HookReads {
  hook(name: string): Promise<{ hook: Hook; secret: string } | null>;
  /** Sorted by name, starting after `after`: at least one, and as many as fit into a page. With `owner`, only that owner's. */
  hooks(page: HookPage): Promise<{ items: Hook[]; more: boolean }>;
  webhook(name: string): Promise<{ webhook: StoredWebhook; secret: string } | null>;
  /** Like `hooks`. With `owner`, returns no webhooks that cover all users. */
  webhooks(page: HookPage): Promise<{ items: StoredWebhook[]; more: boolean }>;
  /** Includes the fields that say who owns its webhook. */
  delivery(delivery_id: string): Promise<(Delivery & Pick<StoredWebhook, "created_by" | "everyones">) | null>;
  /** Newest first. `before` is the `next` of the previous page. With `owner`, returns only deliveries of that owner's webhooks, and none of webhooks that
   * cover all users. */
  deliveries(
    filter: { webhook?: string; run_id?: string; status?: Delivery["status"]; owner?: string },
    page: { before?: string; limit: number },
  ): Promise<{ items: Delivery[]; next: string | null }>;
  /** Whether deliveries are due, or chained runs have to be created. */
  triggers_due(now: Date): Promise<{ deliveries: boolean; chains: boolean }>;
  pending_chains(limit: number): Promise<PendingFollowUp[]>;
}
