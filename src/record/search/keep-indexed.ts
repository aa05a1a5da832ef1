import type { RecordStore } from "../record-store.ts";
import { indexEvents } from "./index-events.ts";

/** Delay before indexing, because runs may end by the hundred and are then indexed together. */
const gatherMs = 2000;

/** Indexes new events in the background. Returns a function that stops it and waits for the current batch. */
export function keepIndexed(store: RecordStore, onError: (error: unknown) => void): () => Promise<void> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | null = null;
  let currentWork: Promise<void> = Promise.resolve();
  const schedule = (): void => {
    if (timer !== null || controller.signal.aborted) return;
    timer = setTimeout(() => {
      timer = null;
      currentWork = currentWork.then(index);
    }, gatherMs).unref();
  };
  const unlisten = store.changes(schedule);
  schedule();
  return async () => {
    controller.abort();
    unlisten();
    if (timer !== null) clearTimeout(timer);
    await currentWork;
  };

  async function index(): Promise<void> {
    try {
      if ((await indexEvents(store.engine, Number.POSITIVE_INFINITY, controller.signal)) === "unavailable") unlisten();
    } catch (error) {
      onError(error);
    }
  }
}
