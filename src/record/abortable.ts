import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { Engine } from "./engine.ts";
import type { RecordStore } from "./record-store.ts";

/**
 * Wraps a store for long maintenance in many transactions. Once `signal` is aborted, the next read or write throws the
 * signal's reason. Committed transactions stay.
 */
export function createAbortableStore(store: RecordStore, signal: AbortSignal): RecordStore {
  return {
    ...store,
    engine: createAbortableEngine(store.engine, signal),
    pruneBlobs: (now) => store.pruneBlobs(now, signal),
  };
}

export function createAbortableEngine<T extends Engine>(engine: T, signal: AbortSignal | undefined): T {
  if (signal === undefined) return engine;
  return {
    ...engine,
    read: async (work) => {
      await checkAborted(signal);
      return engine.read(work);
    },
    readPage: async (work) => {
      await checkAborted(signal);
      return engine.readPage(work);
    },
    write: async (work) => {
      await checkAborted(signal);
      return engine.write(work);
    },
  };
}

/** SQLite runs synchronously, so yield to the event loop first: otherwise nothing could abort the signal. */
async function checkAborted(signal: AbortSignal): Promise<void> {
  await yieldToEventLoop();
  signal.throwIfAborted();
}
