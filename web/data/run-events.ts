import { useMemo, useSyncExternalStore } from "react";
import type { StoredEvent } from "../../src/model/event.ts";
import { HostError } from "../../src/model/errors.ts";
import { api } from "./client.ts";
import { type Activity, createActivityReader } from "./activity.ts";
import { listenLive, useFollow } from "./live.ts";

export interface RunLog {
  events: readonly StoredEvent[];
  /** The same as what was said and done. */
  activity: readonly Activity[];
  /** What the agent is saying at the moment; its end is an `assistant` event. */
  partial: string;
  /** Everything that was stored when the page was opened is here. */
  loaded: boolean;
  error: unknown;
}

const empty: RunLog = { events: [], activity: [], partial: "", loaded: false, error: null };
const pageSize = 1000;

/** Logs that are on the page now: several parts of it share one. */
const logs = new Map<string, { log: ReturnType<typeof openLog>; users: number; stop: () => void }>();

/** Every event of a run once and in order: what is stored, then what happens. */
export function useRunEvents(run_id: string | null): RunLog {
  useFollow(run_id);
  const { subscribe, get } = useMemo(() => (run_id === null ? noLog : shared(run_id)), [run_id]);
  return useSyncExternalStore(subscribe, get);
}

const noLog = { get: () => empty, subscribe: () => () => undefined };

function shared(run_id: string): { subscribe: (watcher: () => void) => () => void; get: () => RunLog } {
  return {
    get: () => logs.get(run_id)?.log.get() ?? empty,
    subscribe(watcher) {
      let one = logs.get(run_id);
      if (one === undefined) {
        const log = openLog(run_id);
        one = { log, users: 0, stop: log.start() };
        logs.set(run_id, one);
      }
      one.users += 1;
      const unsubscribe = one.log.subscribe(watcher);
      return () => {
        unsubscribe();
        one.users -= 1;
        if (one.users > 0) return;
        one.stop();
        logs.delete(run_id);
      };
    },
  };
}

function openLog(run_id: string) {
  let state = empty;
  let reading = false;
  let again = false;
  let stopped = false;
  let frame = 0;
  const watchers = new Set<() => void>();
  const readActivity = createActivityReader();

  function start(): () => void {
    stopped = false;
    void read();
    const silence = listenLive((message) => {
      if (message.kind === "caught_up") void read();
      else if (message.kind === "partial" && message.run_id === run_id) {
        if (message.delta.kind === "assistant") change({ partial: state.partial + message.delta.text });
      } else if (message.kind === "events") append(message.events.filter((event) => event.run_id === run_id));
    });
    return () => {
      stopped = true;
      silence();
    };
  }

  const lastSeq = (): number => state.events.at(-1)?.seq ?? 0;

  function append(news: readonly StoredEvent[]): void {
    const last = lastSeq();
    const next = news.filter(({ seq }) => seq > last);
    if (next.length === 0) return;
    // a gap is read from the store
    if (!state.loaded || next[0]!.seq !== last + 1) return void read();
    add(next);
  }

  function add(events: readonly StoredEvent[]): void {
    const spoken = events.some(({ event }) => event.type === "assistant" || event.type === "result");
    const all = [...state.events, ...events];
    change({ events: all, activity: readActivity(all), ...(spoken ? { partial: "" } : {}) });
  }

  async function read(): Promise<void> {
    if (reading) return void (again = true);
    reading = true;
    try {
      for (;;) {
        const { items, next_cursor } = await api.runs.events(run_id, { after: lastSeq(), limit: pageSize });
        if (stopped) return;
        // the stream may have brought some of these meanwhile
        const last = lastSeq();
        const next = items.filter(({ seq }) => seq > last);
        if (next.length > 0) add(next);
        if (next_cursor === null) break;
      }
      change({ loaded: true, error: null });
    } catch (error) {
      change({ error });
      // a coordinator that did not answer in time is asked again; a refusal stays one
      if (error instanceof HostError && !stopped) setTimeout(() => void (stopped || read()), 2000);
    } finally {
      reading = false;
      if (again) {
        again = false;
        void read();
      }
    }
  }

  /** One notice per frame, however much arrives in it. */
  function change(part: Partial<RunLog>): void {
    state = { ...state, ...part };
    if (frame !== 0) return;
    const tell = (): void => {
      frame = 0;
      for (const watcher of watchers) watcher();
    };
    // a hidden tab has no frames
    frame = document.hidden ? Number(setTimeout(tell, 50)) : requestAnimationFrame(tell);
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
