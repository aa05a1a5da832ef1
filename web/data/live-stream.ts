import type { StoredEvent } from "../../src/model/event.ts";
import { readSse } from "../../src/wire/sse.ts";

export type Connection = "connecting" | "live" | "reconnecting" | "signed_out";

export type LiveMessage =
  | { kind: "connection"; connection: Connection }
  | { kind: "events"; events: StoredEvent[] }
  | { kind: "partial"; run_id: string; attempt: number; delta: { kind: "assistant" | "output"; text: string } }
  /** The stream has begun, or was cut and is back: what happened before may have to be read again. */
  | { kind: "caught_up" };

export interface LiveStream {
  /** The runs whose text is wanted while it is being said. */
  follow(run_ids: readonly string[]): void;
}

/** The server sends a sign of life each 15 s. */
const silenceMs = 40_000;
const longestPauseMs = 5000;
/** Past every event there is: the server starts with what happens from now on. */
const fromNow = Number.MAX_SAFE_INTEGER;

/** The one stream of events that all tabs share. Reconnects for ever, unless the session has ended. */
export function openLiveStream(origin: string, post: (message: LiveMessage) => void): LiveStream {
  let cursor: number | null = null;
  let followed: readonly string[] = [];
  let connected = new AbortController();
  const stream = crypto.randomUUID();
  void run();
  return {
    follow(run_ids) {
      if (run_ids.join() === followed.join()) return;
      followed = run_ids;
      void changeFollowed();
    },
  };

  async function run(): Promise<void> {
    let wasLive = false;
    for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      post({ kind: "connection", connection: wasLive ? "reconnecting" : "connecting" });
      connected = new AbortController();
      const watch = watchSilence(connected);
      try {
        const response = await fetch(addressOf(), {
          headers: { accept: "text/event-stream", "last-event-id": String(cursor ?? fromNow) },
          signal: connected.signal,
        });
        if (response.status === 401) return post({ kind: "connection", connection: "signed_out" });
        if (response.ok && response.body) {
          post({ kind: "connection", connection: "live" });
          wasLive = true;
          pauseMs = 100;
          await readAll(response.body, afterFirst(watch.heard));
        }
      } catch {
        // cut off, silent or refused: all are answered by connecting again, and shown as such
      } finally {
        watch.stop();
        connected.abort();
      }
      post({ kind: "connection", connection: wasLive ? "reconnecting" : "connecting" });
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** The server's first bytes say that it sends all that happens from now on: what a page has read before may be old. */
  function afterFirst(heard: () => void): () => void {
    let isFirst = true;
    return () => {
      heard();
      if (isFirst) post({ kind: "caught_up" });
      isFirst = false;
    };
  }

  function addressOf(): string {
    const query = new URLSearchParams({ stream, ...(followed.length > 0 ? { follow: followed.join(",") } : {}) });
    return `${origin}/events?${query.toString()}`;
  }

  async function readAll(body: ReadableStream<Uint8Array>, heard: () => void): Promise<void> {
    let events: StoredEvent[] = [];
    let flushing: ReturnType<typeof setTimeout> | null = null;
    const flush = (): void => {
      flushing = null;
      post({ kind: "events", events });
      events = [];
    };
    for await (const { event, data } of readSse(chunksOf(body, heard))) {
      // both were written by the server from these types
      if (event === "partial") post({ kind: "partial", ...(JSON.parse(data) as PartialData) });
      else if (event === "message") {
        const stored = JSON.parse(data) as StoredEvent;
        if (cursor !== null && stored.cursor <= cursor) continue;
        cursor = stored.cursor;
        events.push(stored);
        flushing ??= setTimeout(flush, 16);
      }
    }
  }

  /** A stream that the server does not know (any more) is opened again with the new set. */
  async function changeFollowed(): Promise<void> {
    const answer = await fetch(`${origin}/events/follow`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ stream, follow: followed }),
    }).catch(() => null);
    if (answer?.status === 404) connected.abort();
  }
}

type PartialData = Omit<Extract<LiveMessage, { kind: "partial" }>, "kind">;

function watchSilence(connected: AbortController): { heard(): void; stop(): void } {
  let timer = setTimeout(() => connected.abort(), silenceMs);
  return {
    heard() {
      clearTimeout(timer);
      timer = setTimeout(() => connected.abort(), silenceMs);
    },
    stop: () => clearTimeout(timer),
  };
}

async function* chunksOf(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    yield value;
  }
}
