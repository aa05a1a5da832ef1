import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { StoredEvent } from "../../src/model/event.ts";
import { HostError } from "../../src/model/errors.ts";
import { api } from "./client.ts";
import { listenLive, useFollow } from "./live.ts";

export interface RunLog {
  events: readonly StoredEvent[];
  /** What the agent is saying at the moment; its end is an `assistant` event. */
  partial: string;
  /** Everything that was stored when the page was opened is here. */
  loaded: boolean;
  error: unknown;
}

const empty: RunLog = { events: [], partial: "", loaded: false, error: null };
const pageSize = 1000;

/** Every event of a run once and in order: what is stored, then what happens. */
export function useRunEvents(run_id: string): RunLog {
  useFollow(run_id);
  const log = useMemo(() => openLog(run_id), [run_id]);
  useEffect(() => log.start(), [log]);
  return useSyncExternalStore(log.subscribe, log.get);
}

function openLog(run_id: string) {
  let state = empty;
  let reading = false;
  let again = false;
  let stopped = false;
  let frame = 0;
  const watchers = new Set<() => void>();

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
    change({ events: [...state.events, ...events], ...(spoken ? { partial: "" } : {}) });
  }

  async function read(): Promise<void> {
    if (reading) return void (again = true);
    reading = true;
    try {
      for (;;) {
        const { items } = await api.runs.events(run_id, { after: lastSeq(), limit: pageSize });
        if (stopped) return;
        // the stream may have brought some of these meanwhile
        const last = lastSeq();
        const next = items.filter(({ seq }) => seq > last);
        if (next.length > 0) add(next);
        if (items.length < pageSize) break;
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
