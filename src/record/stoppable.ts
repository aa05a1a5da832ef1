import { setImmediate as turn } from "node:timers/promises";
import type { Engine } from "./engine.ts";
import type { RecordStore } from "./record-store.ts";

/**
 * A store for what is done in many transactions and takes long: once `signal` is aborted none of them begins any more,
 * and its reason is thrown. What is done stays done.
 */
export function stoppable(store: RecordStore, signal: AbortSignal): RecordStore {
  return {
    ...store,
    engine: stoppableEngine(store.engine, signal),
    pruneBlobs: (now) => store.pruneBlobs(now, signal),
  };
}

export function stoppableEngine<T extends Engine>(engine: T, signal: AbortSignal | undefined): T {
  if (signal === undefined) return engine;
  return {
    ...engine,
    read: async (work) => {
      await goOn(signal);
      return engine.read(work);
    },
    write: async (work) => {
      await goOn(signal);
      return engine.write(work);
    },
  };
}

/** SQLite answers in the same turn of the event loop, in which nobody could say that it is enough. */
async function goOn(signal: AbortSignal): Promise<void> {
  await turn();
  signal.throwIfAborted();
}
