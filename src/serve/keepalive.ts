import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";

/** Answers that are held for long say now and then that they are still to come: who hears nothing may go elsewhere. */
export interface Keepalives {
  /** After so long without a byte, whoever waits for such an answer may take it for lost. */
  readonly silenceMs: number;
  /**
   * An answer in JSON, with status 200, which may take long. Where it does, it begins with line feeds, which mean nothing
   * in JSON; what goes wrong after the first of them can no longer be told, so `work` rejects and the connection is to be
   * cut. An answer that comes soon is left as it is.
   */
  during(outgoing: ServerResponse, work: () => Promise<Response>): Promise<Response>;
}

export interface KeepaliveOptions {
  everyMs: number;
  headers: Readonly<Record<string, string>>;
}

/** How often it is looked who is due: so many times between two signs. */
const looks = 15;
/** Who came together, as after a restart, gets them spread over so many looks. */
const spread = 5;

/** There may be thousands, so there is one timer for all, which runs only while somebody waits. */
export function createKeepalives({ everyMs, headers }: KeepaliveOptions): Keepalives {
  /** When each is due, the soonest first: who got a sign goes to the end. */
  const waiting = new Map<ServerResponse, number>();
  let timer: NodeJS.Timeout | null = null;

  return { silenceMs: Math.ceil((everyMs * 5) / 3), during };

  async function during(outgoing: ServerResponse, work: () => Promise<Response>): Promise<Response> {
    waiting.set(outgoing, performance.now() + everyMs);
    timer ??= setInterval(look, everyMs / looks).unref();
    try {
      const answer = await work();
      if (!outgoing.headersSent) return answer;
      outgoing.end(await answer.text());
      return RESPONSE_ALREADY_SENT;
    } finally {
      waiting.delete(outgoing);
    }
  }

  function look(): void {
    if (waiting.size === 0 && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
    const now = performance.now();
    let left = Math.ceil(waiting.size / spread);
    for (const [outgoing, due] of waiting) {
      if (due > now || left === 0) return;
      left -= 1;
      waiting.delete(outgoing);
      if (outgoing.destroyed) continue;
      if (!outgoing.headersSent) outgoing.writeHead(200, { ...answerHeaders, ...headers });
      outgoing.write("\n");
      waiting.set(outgoing, now + everyMs);
    }
  }
}

const answerHeaders = {
  "content-type": "application/json",
  "cache-control": "no-store",
  // proxies that gather answers before they pass them on
  "x-accel-buffering": "no",
};
