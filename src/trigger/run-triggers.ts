import type { Change, Store } from "../model/store.ts";
import { type ChainDeps, submitChains } from "./chains.ts";
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
 * Sends deliveries and submits chains while a coordinator serves. Ends of runs in this process are seen at once; those of
 * others, and what is due by the clock, with the next look.
 */
export function runTriggers(options: TriggerOptions): Triggers {
  const { store, now, onFault, everyMs = defaultEveryMs } = options;
  const stopping = new AbortController();
  const deliverer = createDeliverer({ ...options, onCapacity: look });
  let looking: Promise<void> | null = null;
  let again = false;
  const timer = setInterval(look, everyMs).unref();
  const unlisten = store.changes((change) => mayTrigger(change) && look());
  look();

  return {
    async stop() {
      stopping.abort();
      clearInterval(timer);
      unlisten();
      await looking;
      await deliverer.stop();
    },
  };

  function look(): void {
    if (stopping.signal.aborted) return;
    again = true;
    looking ??= lookWhileAsked().finally(() => (looking = null));
  }

  async function lookWhileAsked(): Promise<void> {
    while (again && !stopping.signal.aborted) {
      again = false;
      await turn().catch(onFault);
    }
  }

  async function turn(): Promise<void> {
    // our idea of the store's clock may be behind: the claim itself is judged by that clock
    const due = await store.read.triggers_due(new Date(now().getTime() + 1000));
    if (due.chains) await submitChains(options, stopping.signal);
    if (due.deliveries) await deliverer.take();
  }
}

function mayTrigger({ ended = [] }: Change): boolean {
  return ended.length > 0;
}
