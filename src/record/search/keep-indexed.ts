import type { RecordStore } from "../record-store.ts";
import { indexEvents } from "./index-events.ts";

/** Delay before indexing, because runs may end by the hundred and are then indexed together. */
const gatherMs = 2000;

/** Indexes new events in the background. Returns a function that stops it and waits for the current batch. */
export function keepIndexed(store: RecordStore, onError: (error: unknown) => void): () => Promise<void> {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | null = null;
  let working: Promise<void> = Promise.resolve();
  const schedule = (): void => {
    if (timer !== null || stopping.signal.aborted) return;
    timer = setTimeout(() => {
      timer = null;
      working = working.then(index);
    }, gatherMs).unref();
  };
  const unlisten = store.changes(schedule);
  schedule();
  return async () => {
    stopping.abort();
    unlisten();
    if (timer !== null) clearTimeout(timer);
    await working;
  };

  async function index(): Promise<void> {
    try {
      if ((await indexEvents(store.engine, Number.POSITIVE_INFINITY, stopping.signal)) === "unavailable") unlisten();
    } catch (error) {
      onError(error);
    }
  }
}
