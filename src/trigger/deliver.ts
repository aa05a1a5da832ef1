import { setMaxListeners } from "node:events";
import { fillTemplates } from "../model/json-values.ts";
import type { ClaimedDelivery } from "../model/hook-ops.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { AddressRules } from "./addresses.ts";
import { post, type PostResult, type PostOptions } from "./post.ts";
import type { SecretBox } from "./secret-box.ts";
import { createSignature } from "./signature.ts";
import { openWebhook } from "./webhook-secrets.ts";

export interface DeliverOptions {
  store: Pick<Store, "apply">;
  secrets: SecretBox;
  vault: Vault;
  rules: AddressRules;
  now: () => Date;
  onError: (error: unknown) => void;
  /** Called when a delivery has finished and another one can start. */
  onCapacity: () => void;
  version: string;
  /** The delay before the next attempt. */
  retryMs?: (attempt: number) => number;
  leaseMs?: number;
  timeoutMs?: number;
  resolve?: PostOptions["resolve"];
}

export interface Deliverer {
  /** Starts due deliveries, up to the limit. Does not wait for the receivers. */
  startDue(): Promise<void>;
  /** Aborts deliveries in progress. Another coordinator, or this one after a restart, sends them again. */
  stop(): Promise<void>;
}

const maxConcurrent = 16;
const maxConcurrentPerWebhook = 2;
const maxConcurrentPerOwner = 4;
/** A lease is longer than an attempt can take. */
const defaultLeaseMs = 20_000;

export function createDeliverer(options: DeliverOptions): Deliverer {
  const { store, leaseMs = defaultLeaseMs, onError, onCapacity } = options;
  const inProgress = new Map<Promise<void>, ClaimedDelivery>();
  const stopController = new AbortController();
  // Each delivery in progress listens to this signal, and Node warns of a leak beyond ten listeners.
  setMaxListeners(maxConcurrent, stopController.signal);

  return {
    async startDue() {
      while (inProgress.size < maxConcurrent && !stopController.signal.aborted) {
        const limit = maxConcurrent - inProgress.size;
        const [claimed] = await store.apply([
          {
            op: "claim_deliveries",
            limit,
            lease_ms: leaseMs,
            max_per_webhook: 1,
            busy: findBusyWebhooks(),
            max_per_owner: maxConcurrentPerOwner,
            in_progress: [...inProgress.values()].map(({ owner }) => owner),
          },
        ]);
        if (!claimed.ok || claimed.deliveries.length === 0) return;
        for (const delivery of claimed.deliveries) start(delivery);
      }
    },
    async stop() {
      stopController.abort();
      await Promise.all(inProgress.keys());
    },
  };

  function start(delivery: ClaimedDelivery): void {
    const sendTask = deliver(delivery, options, stopController.signal)
      .catch(onError)
      .then(() => {
        inProgress.delete(sendTask);
        onCapacity();
      });
    inProgress.set(sendTask, delivery);
  }

  function findBusyWebhooks(): string[] {
    const names = [...inProgress.values()].map(({ webhook }) => webhook);
    return [...new Set(names)].filter(
      (name) => names.filter((other) => other === name).length >= maxConcurrentPerWebhook,
    );
  }
}

/** Makes one attempt and records its outcome. */
async function deliver(delivery: ClaimedDelivery, options: DeliverOptions, signal: AbortSignal): Promise<void> {
  const { store, retryMs = computeBackoffMs } = options;
  const { delivery_id, attempt } = delivery;
  const postResult = await send(delivery, options, signal);
  const status = "status" in postResult ? postResult.status : null;
  const isDelivered = status !== null && status >= 200 && status < 300;
  const retry_in_ms = signal.aborted ? 0 : retryMs(attempt);
  await store.apply([
    {
      op: "settle_delivery",
      delivery_id,
      attempt,
      outcome: isDelivered
        ? { delivered: true }
        : { delivered: false, error: options.vault.redact(describeFailure(postResult)), retry_in_ms },
      response_status: status,
      response: "status" in postResult ? options.vault.redact(postResult.excerpt) : null,
    },
  ]);
}

async function send(delivery: ClaimedDelivery, options: DeliverOptions, signal: AbortSignal): Promise<PostResult> {
  const { secrets, vault, rules, now, timeoutMs, resolve, version } = options;
  const { url, payload } = openWebhook(delivery.webhook, delivery, delivery.sealed, vault);
  const problem = rules.checkUrl(url);
  if (problem !== null) return { error: `The webhook's address ${problem}.` };
  const body = Buffer.from(JSON.stringify(buildBody({ ...delivery, payload })));
  const secret = secrets.open(`webhook ${delivery.webhook}`, delivery.secret);
  return post(new URL(url), {
    body,
    rules,
    signal,
    headers: {
      "content-type": "application/json",
      "user-agent": `Drover/${version}`,
      "drover-event": `run.${delivery.event}`,
      "drover-delivery": delivery.delivery_id,
      "drover-signature": createSignature(secret, body, now()),
    },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(resolve === undefined ? {} : { resolve }),
  });
}

/** A notification contains only the start of long text. GET /runs/{run_id} returns all of it. */
const maxTextLength = 4000;

function buildBody({ delivery_id, event, at, state, run, payload }: ClaimedDelivery): unknown {
  const truncate = (text: string | null | undefined): string | null => text?.slice(0, maxTextLength) ?? null;
  const notification = {
    delivery_id,
    event: `run.${event}`,
    at,
    run: run && {
      run_id: run.run_id,
      agent_name: run.agent_name,
      created_by: run.created_by,
      trigger_type: run.trigger_type,
      parent_run_id: run.parent_run_id,
      session_id: run.session_id,
      created_at: run.created_at,
      ...state,
      error: truncate(state.error),
      ...(event === "completed" || event === "failed" || event === "cancelled"
        ? { finished_at: run.finished_at, summary: run.summary, result_text: truncate(run.result_text) }
        : {}),
    },
  };
  return payload === null ? notification : fillTemplates(payload, notification);
}

function describeFailure(postResult: PostResult): string {
  if ("error" in postResult) return postResult.error;
  const { status } = postResult;
  return status >= 300 && status < 400
    ? `The receiver responded with ${status}, a redirect. Drover does not follow redirects: register the address it leads to.`
    : `The receiver responded with ${status}.`;
}

/** Returns 5 s, 10 s, 20 s ... up to 2 h. The 20 % jitter keeps a receiver that recovers from getting all deliveries at once. */
function computeBackoffMs(attempt: number): number {
  return Math.min(5000 * 2 ** Math.min(attempt - 1, 20), 7_200_000) * (0.8 + Math.random() * 0.4);
}
