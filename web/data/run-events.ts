import { useMemo, useSyncExternalStore } from "react";
import type { StoredEvent } from "../../src/model/event.ts";
import { HostError } from "../../src/model/errors.ts";
import { api } from "./client.ts";
import { type Activity, createActivityReader } from "./activity.ts";
import { listenLive, useFollow } from "./live.ts";

export interface RunLog {
  events: readonly StoredEvent[];
  /** The activities that the events describe. */
  activity: readonly Activity[];
  /** Text that the agent is still writing. The `assistant` event with the complete text replaces it. */
  partial: string;
  /** Whether all events stored when the page opened have been read. */
  isLoaded: boolean;
  error: unknown;
}

const emptyLog: RunLog = { events: [], activity: [], partial: "", isLoaded: false, error: null };
const pageSize = 1000;

/** The logs in use on this page. Components that show the same run share a log. */
const logs = new Map<string, { log: ReturnType<typeof openLog>; users: number; stop: () => void }>();

/** Returns every event of a run, once and in order: first the stored events, then live ones. */
export function useRunEvents(run_id: string | null): RunLog {
  useFollow(run_id);
  const { subscribe, get } = useMemo(() => (run_id === null ? noLog : openSharedLog(run_id)), [run_id]);
  return useSyncExternalStore(subscribe, get);
}

const noLog = { get: () => emptyLog, subscribe: () => () => undefined };

function openSharedLog(run_id: string): { subscribe: (watcher: () => void) => () => void; get: () => RunLog } {
  return {
    get: () => logs.get(run_id)?.log.get() ?? emptyLog,
    subscribe(watcher) {
      let entry = logs.get(run_id);
      if (entry === undefined) {
        const log = openLog(run_id);
        entry = { log, users: 0, stop: log.start() };
        logs.set(run_id, entry);
      }
      entry.users += 1;
      const unsubscribe = entry.log.subscribe(watcher);
      return () => {
        unsubscribe();
        entry.users -= 1;
        if (entry.users > 0) return;
        entry.stop();
        logs.delete(run_id);
      };
    },
  };
}

function openLog(run_id: string) {
  let state = emptyLog;
  let isReading = false;
  let isReadRequested = false;
  let isStopped = false;
  let pendingNotification = 0;
  const watchers = new Set<() => void>();
  const readActivity = createActivityReader();

  function start(): () => void {
    isStopped = false;
    void read();
    const unsubscribe = listenLive((message) => {
      if (message.kind === "caught_up") void read();
      else if (message.kind === "partial" && message.run_id === run_id) {
        if (message.delta.kind === "assistant") update({ partial: state.partial + message.delta.text });
      } else if (message.kind === "events") append(message.events.filter((event) => event.run_id === run_id));
    });
    return () => {
      isStopped = true;
      unsubscribe();
    };
  }

  const lastSeq = (): number => state.events.at(-1)?.seq ?? 0;

  function append(received: readonly StoredEvent[]): void {
    const last = lastSeq();
    const next = received.filter(({ seq }) => seq > last);
    if (next.length === 0) return;
    // Fill a gap by reading from the store.
    if (!state.isLoaded || next[0]!.seq !== last + 1) return void read();
    add(next);
  }

  function add(events: readonly StoredEvent[]): void {
    const replacesPartial = events.some(({ event }) => event.type === "assistant" || event.type === "result");
    const all = [...state.events, ...events];
    update({ events: all, activity: readActivity(all), ...(replacesPartial ? { partial: "" } : {}) });
  }

  async function read(): Promise<void> {
    if (isReading) return void (isReadRequested = true);
    isReading = true;
    try {
      for (;;) {
        const { items, next_cursor } = await api.runs.events(run_id, { after: lastSeq(), limit: pageSize });
        if (isStopped) return;
        // The stream may have delivered some of these events in the meantime.
        const last = lastSeq();
        const next = items.filter(({ seq }) => seq > last);
        if (next.length > 0) add(next);
        if (next_cursor === null) break;
      }
      update({ isLoaded: true, error: null });
    } catch (error) {
      update({ error });
      // Retry if the coordinator was unreachable. Other errors are final.
      if (error instanceof HostError && !isStopped) setTimeout(() => void (isStopped || read()), 2000);
    } finally {
      isReading = false;
      if (isReadRequested) {
        isReadRequested = false;
        void read();
      }
    }
  }

  /** Notifies watchers at most once per frame. */
  function update(changes: Partial<RunLog>): void {
    state = { ...state, ...changes };
    if (pendingNotification !== 0) return;
    const notify = (): void => {
      pendingNotification = 0;
      for (const watcher of watchers) watcher();
    };
    // A hidden tab gets no animation frames.
    pendingNotification = document.hidden ? Number(setTimeout(notify, 50)) : requestAnimationFrame(notify);
  }

  return {
    start,
    get: () => state,
    subscribe(watcher: () => void) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
  };
}
