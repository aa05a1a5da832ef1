import { HostError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Delta } from "../model/executor.ts";
import type { ReportRequest } from "../model/runner-port.ts";
import { readSse } from "./sse.ts";
import type { Transport } from "./transport.ts";
import { coordinatorUnreachable } from "./coordinator-unreachable.ts";

export interface FollowOptions {
  /** Start after this seq (of a run) or cursor (of all runs). */
  after?: number;
  signal?: AbortSignal;
  /** A stream that is silent for longer is dead: the coordinator sends a heartbeat every 15 s. */
  silenceMs?: number;
  /** How long to try to connect before giving up. */
  giveUpMs?: number;
  /** Called with the text that the agent is producing right now. Partial output is neither stored nor yielded, and some may be lost. */
  onPartial?: (delta: Delta) => void;
  /** Called before each reconnect. */
  onReconnect?: () => void;
}

/**
 * Yields every event once and in order. After a lost connection it resumes after the last event seen. Following one run
 * ends with its result; following all runs (null) never ends.
 */
export async function* followEvents(
  transport: Transport,
  run_id: string | null,
  options: FollowOptions,
): AsyncGenerator<StoredEvent> {
  const position = run_id === null ? "cursor" : "seq";
  let after = options.after ?? 0;
  let backoffMs = minBackoffMs;
  let failingSince: number | null = null;
  for (;;) {
    try {
      for await (const event of readConnection(transport, run_id, after, options)) {
        if (event === "end") return;
        if (event === "open") {
          failingSince = null;
          backoffMs = minBackoffMs;
          continue;
        }
        // A reconnect may repeat events.
        if (event[position] <= after) continue;
        after = event[position];
        yield event;
        if (position === "seq" && event.event.type === "result") return;
      }
    } catch (error) {
      if (options.signal?.aborted) return;
      if (!(error instanceof HostError)) throw error;
      failingSince ??= Date.now();
      if (Date.now() - failingSince > (options.giveUpMs ?? 300_000)) throw error;
    }
    if (options.signal?.aborted) return;
    options.onReconnect?.();
    await pause(backoffMs, options.signal);
    backoffMs = Math.min(backoffMs * 2, maxBackoffMs);
  }
}

const minBackoffMs = 50;
const maxBackoffMs = 2000;

async function* readConnection(
  transport: Transport,
  run_id: string | null,
  after: number,
  options: FollowOptions,
): AsyncGenerator<StoredEvent | "open" | "end"> {
  const connection = new AbortController();
  const onAbort = (): void => connection.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", onAbort);
  if (options.signal?.aborted) onAbort();
  const silenceMs = options.silenceMs ?? 60_000;
  const silenceTimer = setTimeout(() => connection.abort(new Error(`no heartbeat for ${silenceMs} ms`)), silenceMs);
  try {
    const input = { headers: { "last-event-id": after }, stream: true, signal: connection.signal };
    const response = await (run_id === null
      ? transport.bytes("GET /events", input)
      : transport.bytes("GET /runs/{run_id}/events", { ...input, params: { run_id } }));
    if (response === null) return yield "end";
    yield "open";
    for await (const message of readSse(refreshOnChunk(silenceTimer, response.bytes))) {
      if (message.event === "end") return yield "end";
      if (message.event === "partial") {
        // The coordinator serialized a partial of a report.
        options.onPartial?.((JSON.parse(message.data) as ReportRequest["partials"][number]).delta);
        continue;
      }
      // The coordinator serialized a StoredEvent.
      yield JSON.parse(message.data) as StoredEvent;
    }
  } catch (error) {
    // A lost connection is retried by the caller; a refusal is not.
    if (error instanceof TypeError || connection.signal.aborted) throw coordinatorUnreachable(transport.url, error);
    throw error;
  } finally {
    clearTimeout(silenceTimer);
    options.signal?.removeEventListener("abort", onAbort);
    connection.abort();
  }
}

/** Restarts the timer with each chunk. Heartbeats count too. */
async function* refreshOnChunk(timer: NodeJS.Timeout, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    timer.refresh();
    yield chunk;
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}
