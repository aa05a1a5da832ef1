import type { Hook } from "./hook.ts";
import type { Run } from "./run.ts";
import type { WebhookEvent } from "./webhook-events.ts";
import type { Delivery, Webhook } from "./webhook.ts";

/** The store operations of webhooks and chains. `secret` is sealed by the caller: the store never has one in the clear. */
export type TriggerOp =
  | PutHook
  | DeleteHook
  | PutWebhook
  | DeleteWebhook
  | ClaimDeliveries
  | SettleDelivery
  | Redeliver
  | RefuseChain;

/** `create`: a known name is `exists`. Otherwise an unknown one is `not_found`, and without a secret the old one stays. */
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
  webhook: Webhook;
  secret?: string;
  create: boolean;
}

/** With its deliveries. */
export interface DeleteWebhook {
  op: "delete_webhook";
  name: string;
}

/**
 * Hands out deliveries that are due, each to one caller: nobody else is given it for `lease_ms`, and after that it counts
 * as an attempt whose end nobody saw.
 */
export interface ClaimDeliveries {
  op: "claim_deliveries";
  limit: number;
  lease_ms: number;
  /** At most so many of one webhook. Those of `busy` get none: a receiver that hangs holds up nobody else. */
  of_one: number;
  busy: readonly string[];
}

/** By the holder of this attempt alone; another is `stale`. */
export interface SettleDelivery {
  op: "settle_delivery";
  delivery_id: string;
  attempt: number;
  /** After so long it is tried again, unless that is past the day it is given. */
  outcome: { delivered: true } | { delivered: false; error: string; retry_in_ms: number | null };
  response_status: number | null;
  response: string | null;
}

/** Due now, and for another day. */
export interface Redeliver {
  op: "redeliver";
  delivery_id: string;
}

/** The run that was to follow cannot be submitted: it is stored as a child that failed as `refused`. */
export interface RefuseChain {
  op: "refuse_chain";
  parent_run_id: string;
  run: Run;
  why: string;
}

export type TriggerResult =
  | { ok: true; op: "put_hook" }
  | { ok: true; op: "delete_hook" }
  | { ok: true; op: "put_webhook" }
  | { ok: true; op: "delete_webhook" }
  | { ok: true; op: "claim_deliveries"; deliveries: ClaimedDelivery[] }
  | { ok: true; op: "settle_delivery"; status: Delivery["status"] }
  | { ok: true; op: "redeliver" }
  | { ok: true; op: "refuse_chain" }
  | { ok: false; conflict: "exists" | "not_found" | "stale" | "repeated" };

export interface ClaimedDelivery {
  delivery_id: string;
  attempt: number;
  webhook: string;
  url: string;
  /** Sealed. */
  secret: string;
  payload: unknown;
  event: WebhookEvent;
  at: string;
  /** The state that the event is about, whatever became of the run since. */
  state: Partial<Run>;
  /** null: it was removed meanwhile. */
  run: Run | null;
}

/** A run that was submitted with the end of another, until it is made. */
export interface PendingChain {
  parent_run_id: string;
  created_by: string;
  project_dir: string | null;
  agent_name: string;
  parameters: Record<string, unknown>;
  prompt: string | null;
  /** Why it cannot be made. */
  fault: string | null;
}

export interface TriggerReads {
  hook(name: string): Promise<{ hook: Hook; secret: string } | null>;
  hooks(): Promise<Hook[]>;
  webhook(name: string): Promise<{ webhook: Webhook; secret: string } | null>;
  webhooks(): Promise<Webhook[]>;
  delivery(delivery_id: string): Promise<(Delivery & { owner: string }) | null>;
  /** Newest first; `before` as in the page before. */
  deliveries(
    filter: { webhook?: string; run_id?: string; status?: Delivery["status"]; owner?: string },
    page: { before?: string; limit: number },
  ): Promise<{ items: Delivery[]; next: string | null }>;
  /** Whether something is to be delivered, or to follow a run that ended. */
  triggers_due(now: Date): Promise<{ deliveries: boolean; chains: boolean }>;
  pending_chains(limit: number): Promise<PendingChain[]>;
}
