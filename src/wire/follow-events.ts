import { HostError } from "../model/errors.ts";
import type { StoredEvent } from "../model/event.ts";
import type { Delta } from "../model/executor.ts";
import type { ReportRequest } from "../model/runner-port.ts";
import { readSse } from "./sse.ts";
import type { Transport } from "./transport.ts";
import { coordinatorUnreachable } from "./coordinator-unreachable.ts";

export interface FollowOptions {
  /** Begin after this seq (of a run) or cursor (of all runs). */
  after?: number;
  signal?: AbortSignal;
  /** A stream silent for longer than this is dead: the server sends a heartbeat each 15 s. */
  silenceMs?: number;
  /** Gives up after being unable to connect for this long. */
  giveUpMs?: number;
  /** What an agent is saying at the moment, of a run that is followed: best effort, never stored, and never yielded. */
  onPartial?: (delta: Delta) => void;
  /** Each time the connection was cut and is made again. */
  onReconnect?: () => void;
}

/**
 * Every event once, in order, however often the connection is cut: each new one begins after the last
 * event seen. Of one run it ends after the result; of all runs (null) never.
 */
export async function* followEvents(
  transport: Transport,
  run_id: string | null,
  options: FollowOptions,
): AsyncGenerator<StoredEvent> {
  const place = run_id === null ? "cursor" : "seq";
  let after = options.after ?? 0;
  let pauseMs = firstPauseMs;
  let awaySince: number | null = null;
  for (;;) {
    try {
      for await (const event of oneConnection(transport, run_id, after, options)) {
        if (event === "end") return;
        if (event === "open") {
          awaySince = null;
          pauseMs = firstPauseMs;
          continue;
        }
        // what a reconnect might repeat is known by its number
        if (event[place] <= after) continue;
        after = event[place];
        yield event;
        if (place === "seq" && event.event.type === "result") return;
      }
    } catch (error) {
      if (options.signal?.aborted) return;
      if (!(error instanceof HostError)) throw error;
      awaySince ??= Date.now();
      if (Date.now() - awaySince > (options.giveUpMs ?? 300_000)) throw error;
    }
    if (options.signal?.aborted) return;
    options.onReconnect?.();
    await pause(pauseMs, options.signal);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

const firstPauseMs = 50;
const longestPauseMs = 2000;

async function* oneConnection(
  transport: Transport,
  run_id: string | null,
  after: number,
  options: FollowOptions,
): AsyncGenerator<StoredEvent | "open" | "end"> {
  const cut = new AbortController();
  const leave = (): void => cut.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", leave);
  if (options.signal?.aborted) leave();
  const silenceMs = options.silenceMs ?? 60_000;
  const watch = setTimeout(() => cut.abort(new Error("the stream fell silent")), silenceMs);
  try {
    const input = { headers: { "last-event-id": after }, stream: true, signal: cut.signal };
    const answer = await (run_id === null
      ? transport.bytes("GET /events", input)
      : transport.bytes("GET /runs/{run_id}/events", { ...input, params: { run_id } }));
    if (answer === null) return yield "end";
    yield "open";
    for await (const message of readSse(awake(answer.bytes, watch))) {
      if (message.event === "end") return yield "end";
      if (message.event === "partial") {
        // written from one by the server
        options.onPartial?.((JSON.parse(message.data) as ReportRequest["partials"][number]).delta);
        continue;
      }
      // written from a StoredEvent by the server
      yield JSON.parse(message.data) as StoredEvent;
    }
  } catch (error) {
    // a cut in the middle is what following is for; a refusal is not
    if (error instanceof TypeError || cut.signal.aborted) throw coordinatorUnreachable(transport.url, error);
    throw error;
  } finally {
    clearTimeout(watch);
    options.signal?.removeEventListener("abort", leave);
    cut.abort();
  }
}

/** Each chunk, a heartbeat too, proves that the other side lives. */
async function* awake(bytes: AsyncIterable<Uint8Array>, watch: NodeJS.Timeout): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    watch.refresh();
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
