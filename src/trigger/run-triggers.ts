import type { Change, Store } from "../model/store.ts";
import { type ChainDeps, submitFollowUps } from "./chains.ts";
import { createDeliverer, type DeliverOptions } from "./deliver.ts";

export interface TriggerOptions extends ChainDeps, Omit<DeliverOptions, "onCapacity" | "store"> {
  store: Pick<Store, "apply" | "read" | "changes">;
  everyMs?: number;
}

export interface Triggers {
  stop(): Promise<void>;
}

const defaultEveryMs = 1000;

/**
 * Sends webhook deliveries and submits chained runs while a coordinator serves. Reacts at once to runs that finish
 * through this process. Polling finds runs that finish through other coordinators, and retries that become due.
 */
export function runTriggers(options: TriggerOptions): Triggers {
  const { store, now, onError, everyMs = defaultEveryMs } = options;
  const stopController = new AbortController();
  const deliverer = createDeliverer({ ...options, onCapacity: poll });
  let currentPoll: Promise<void> | null = null;
  let isPollRequested = false;
  const timer = setInterval(poll, everyMs).unref();
  const unsubscribe = store.changes((change) => canTrigger(change) && poll());
  poll();

  return {
    async stop() {
      stopController.abort();
      clearInterval(timer);
      unsubscribe();
      await currentPoll;
      await deliverer.stop();
    },
  };

  function poll(): void {
    if (stopController.signal.aborted) return;
    isPollRequested = true;
    currentPoll ??= pollUntilDone().finally(() => (currentPoll = null));
  }

  async function pollUntilDone(): Promise<void> {
    while (isPollRequested && !stopController.signal.aborted) {
      isPollRequested = false;
      await pollOnce().catch(onError);
    }
  }

  async function pollOnce(): Promise<void> {
    // This process's estimate of the store's clock may be behind. The claim itself uses the store's clock.
    const due = await store.read.triggers_due(new Date(now().getTime() + 1000));
    if (due.chains) await submitFollowUps(options, stopController.signal);
    if (due.deliveries) await deliverer.startDue();
  }
}

function canTrigger({ ended = [] }: Change): boolean {
  return ended.length > 0;
}
