import type { StoredEvent } from "../../src/model/event.ts";
import { readSse } from "../../src/wire/sse.ts";

export type Connection = "connecting" | "live" | "reconnecting" | "signed_out";

export type LiveMessage =
  | { kind: "connection"; connection: Connection }
  | { kind: "events"; events: StoredEvent[] }
  | { kind: "partial"; run_id: string; attempt: number; delta: { kind: "assistant" | "output"; text: string } }
  /** The stream has opened or reopened. Data that was read earlier may be stale. */
  | { kind: "caught_up" };

export interface LiveStream {
  /** Sets the runs whose partial text the coordinator should stream. */
  follow(run_ids: readonly string[]): void;
}

/** The coordinator sends a keepalive every 15 s. */
const silenceTimeoutMs = 40_000;
const maxBackoffMs = 5000;
/** A cursor past every stored event, so that the coordinator sends only new ones. */
const cursorPastEnd = Number.MAX_SAFE_INTEGER;

/** Opens the event stream that all tabs share. Reconnects until the session ends. */
export function openLiveStream(origin: string, post: (message: LiveMessage) => void): LiveStream {
  let cursor: number | null = null;
  let followedRuns: readonly string[] = [];
  let request = new AbortController();
  const stream = crypto.randomUUID();
  void run();
  return {
    follow(run_ids) {
      if (run_ids.join() === followedRuns.join()) return;
      followedRuns = run_ids;
      void updateFollowed();
    },
  };

  async function run(): Promise<void> {
    let wasLive = false;
    for (let backoffMs = 100; ; backoffMs = Math.min(backoffMs * 2, maxBackoffMs)) {
      post({ kind: "connection", connection: wasLive ? "reconnecting" : "connecting" });
      request = new AbortController();
      const silenceTimeout = abortOnSilence(request);
      try {
        const response = await fetch(buildStreamUrl(), {
          headers: { accept: "text/event-stream", "last-event-id": String(cursor ?? cursorPastEnd) },
          signal: request.signal,
        });
        if (response.status === 401) return post({ kind: "connection", connection: "signed_out" });
        if (response.ok && response.body) {
          post({ kind: "connection", connection: "live" });
          wasLive = true;
          backoffMs = 100;
          await readEvents(response.body, postCaughtUp(silenceTimeout.reset));
        }
      } catch {
        // The stream was disconnected, silent or refused. The loop reconnects, and the page shows the connection state.
      } finally {
        silenceTimeout.stop();
        request.abort();
      }
      post({ kind: "connection", connection: wasLive ? "reconnecting" : "connecting" });
      await new Promise((resolve) => setTimeout(resolve, backoffMs));
    }
  }

  /** Posts `caught_up` with the coordinator's first bytes. From then on, every new event arrives on this stream. */
  function postCaughtUp(onChunk: () => void): () => void {
    let isFirst = true;
    return () => {
      onChunk();
      if (isFirst) post({ kind: "caught_up" });
      isFirst = false;
    };
  }

  function buildStreamUrl(): string {
    const query = new URLSearchParams({
      stream,
      ...(followedRuns.length > 0 ? { follow: followedRuns.join(",") } : {}),
    });
    return `${origin}/events?${query.toString()}`;
  }

  async function readEvents(body: ReadableStream<Uint8Array>, onChunk: () => void): Promise<void> {
    let events: StoredEvent[] = [];
    let flushTimer: ReturnType<typeof setTimeout> | null = null;
    const flush = (): void => {
      flushTimer = null;
      post({ kind: "events", events });
      events = [];
    };
    for await (const { event, data } of readSse(readChunks(body, onChunk))) {
      // The coordinator serializes these types.
      if (event === "partial") post({ kind: "partial", ...(JSON.parse(data) as PartialData) });
      else if (event === "message") {
        const stored = JSON.parse(data) as StoredEvent;
        if (cursor !== null && stored.cursor <= cursor) continue;
        cursor = stored.cursor;
        events.push(stored);
        flushTimer ??= setTimeout(flush, 16);
      }
    }
  }

  /** If the coordinator no longer knows the stream, reconnects with the new set of runs. */
  async function updateFollowed(): Promise<void> {
    const response = await fetch(`${origin}/events/follow`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ stream, follow: followedRuns }),
    }).catch(() => null);
    if (response?.status === 404) request.abort();
  }
}

type PartialData = Omit<Extract<LiveMessage, { kind: "partial" }>, "kind">;

function abortOnSilence(request: AbortController): { reset(): void; stop(): void } {
  let timer = setTimeout(() => request.abort(), silenceTimeoutMs);
  return {
    reset() {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), silenceTimeoutMs);
    },
    stop: () => clearTimeout(timer),
  };
}

async function* readChunks(body: ReadableStream<Uint8Array>, onChunk: () => void): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onChunk();
    yield value;
  }
}
