import { type Connection, connect } from "./connection.ts";
import { createUnavailableError, toHostError, isUnavailable } from "./errors.ts";
import { responseTimeoutMs, lockTimeoutMs } from "./limits.ts";

/** A connection that is opened on demand, and reopened after it breaks. */
export interface Link {
  /**
   * Retries the work over a new connection while the database is down, so the work must be safe to repeat. Callers that
   * arrive later in an outage wait less, and after `outageWaitMs` of outage not at all: a prompt error is better than a
   * late response that nobody waits for any more.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  close(): void;
}

interface LinkOptions {
  url: string;
  outageWaitMs: number;
  idleInTransactionMs?: number;
  byIndexOnly?: true;
  /** If the server does not respond within this time, it counts as down. */
  responseMs?: number;
}

export function openLink({ url, outageWaitMs, responseMs = responseTimeoutMs, ...options }: LinkOptions): Link {
  let connecting: Promise<Connection> | null = null;
  let closed = false;
  let outage: { since: number; last: number } | null = null;
  return {
    async use(work) {
      for (;;) {
        const startedAt = performance.now();
        const current = connecting ?? reconnect();
        try {
          const result = await work(await current);
          outage = null;
          return result;
        } catch (error) {
          if (!isUnavailable(error)) throw toHostError(error, url);
          if (connecting === current) drop();
          if (closed || hasTimedOut(startedAt)) throw createUnavailableError(url, error);
        }
        await delay();
      }
    },
    close() {
      closed = true;
      drop();
    },
  };

  /**
   * Whether a failed attempt started after the outage had lasted for `outageWaitMs`. An outage starts when the first
   * attempt fails, and ends if nothing was attempted for `outageWaitMs`. A caller that slept meanwhile, for example because
   * this process was suspended, gets one more attempt.
   */
  function hasTimedOut(startedAt: number): boolean {
    const now = performance.now();
    const since = outage === null || startedAt - outage.last > outageWaitMs ? now : outage.since;
    outage = { since, last: now };
    return startedAt - since >= outageWaitMs;
  }

  function reconnect(): Promise<Connection> {
    const opening = connect(url, { ...options, responseMs, lockMs: lockTimeoutMs });
    connecting = opening;
    // The next caller tries again, whatever the error was.
    opening.catch(() => {
      if (connecting === opening) connecting = null;
    });
    return opening;
  }

  function drop(): void {
    connecting?.then(
      (connection) => connection.end(),
      () => undefined, // The connection never opened, and its caller got the error.
    );
    connecting = null;
  }
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 20 + Math.random() * 80);
  });
}
