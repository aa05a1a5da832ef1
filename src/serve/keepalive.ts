import type { ServerResponse } from "node:http";
import { alreadySent, type RenderedResponse } from "./rendered-response.ts";

/** Sends keepalives while a response takes a long time, so that the client can tell a slow coordinator from a dead one. */
export interface Keepalives {
  /** After this long without a byte, a client may consider the response lost. */
  readonly silenceMs: number;
  /**
   * For a JSON response with status 200. If `work` takes a long time, the response starts with line feeds, which JSON ignores. After
   * the first one an error can no longer be reported: this rejects, and the caller must close the connection. A response
   * that is ready before the first keepalive is returned unchanged.
   */
  sendDuring(outgoing: ServerResponse, work: () => Promise<RenderedResponse>): Promise<RenderedResponse>;
}

export interface KeepaliveOptions {
  everyMs: number;
  headers: Readonly<Record<string, string>>;
}

/** Timer ticks per interval. */
const ticksPerInterval = 15;
/** Responses that became due together, as after a restart, are spread over this many ticks. */
const spreadTicks = 5;

/** Uses one timer for all responses, because there may be thousands. It runs only while a response is pending. */
export function createKeepalives({ everyMs, headers }: KeepaliveOptions): Keepalives {
  /** When each response is due for a keepalive, soonest first. */
  const pending = new Map<ServerResponse, number>();
  let timer: NodeJS.Timeout | null = null;

  return { silenceMs: Math.ceil((everyMs * 5) / 3), sendDuring };

  async function sendDuring(
    outgoing: ServerResponse,
    work: () => Promise<RenderedResponse>,
  ): Promise<RenderedResponse> {
    pending.set(outgoing, performance.now() + everyMs);
    timer ??= setInterval(tick, everyMs / ticksPerInterval).unref();
    try {
      const response = await work();
      if (!outgoing.headersSent) return response;
      outgoing.end(response.body);
      return alreadySent;
    } finally {
      pending.delete(outgoing);
    }
  }

  function tick(): void {
    if (pending.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    const now = performance.now();
    let remaining = Math.ceil(pending.size / spreadTicks);
    for (const [outgoing, due] of pending) {
      if (due > now || remaining === 0) return;
      remaining -= 1;
      pending.delete(outgoing);
      if (outgoing.destroyed) continue;
      if (!outgoing.headersSent) outgoing.writeHead(200, { ...responseHeaders, ...headers });
      outgoing.write("\n");
      pending.set(outgoing, now + everyMs);
    }
  }
}

const responseHeaders = {
  "content-type": "application/json",
  "cache-control": "no-store",
  // Tells proxies not to buffer the response.
  "x-accel-buffering": "no",
};
