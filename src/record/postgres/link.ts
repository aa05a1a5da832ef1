import { type Connection, connect } from "./connection.ts";
import { unavailable, toHostError, isUnavailable } from "./errors.ts";
import { answerTimeoutMs, lockTimeoutMs } from "./limits.ts";

/** A connection that is opened on demand, and reopened after it breaks. */
export interface Link {
  /**
   * Retries the work over a new connection while the database is down, so the work must be safe to repeat. Callers that
   * arrive later in an outage wait less, and after `waitMs` of outage not at all: a prompt error is better than an answer
   * that nobody waits for any more.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>;
  close(): void;
}

interface LinkOptions {
  url: string;
  waitMs: number;
  idleInTransactionMs?: number;
  byIndexOnly?: true;
  /** If the server does not answer within this time, it counts as down. */
  answerMs?: number;
}

export function openLink({ url, waitMs, answerMs = answerTimeoutMs, ...options }: LinkOptions): Link {
  let connecting: Promise<Connection> | null = null;
  let closed = false;
  let outage: { since: number; last: number } | null = null;
  return {
    async use(work) {
      for (;;) {
        const began = performance.now();
        const mine = connecting ?? reconnect();
        try {
          const done = await work(await mine);
          outage = null;
          return done;
        } catch (error) {
          if (!isUnavailable(error)) throw toHostError(error, url);
          if (connecting === mine) drop();
          if (closed || isGivenUp(began)) throw unavailable(url, error);
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
   * Whether a failed attempt started after the outage had lasted for `waitMs`. An outage starts when the first attempt fails.
   * A caller that slept meanwhile, for example because this process was suspended, gets one more attempt. An old failure
   * without later attempts counts as a separate outage.
   */
  function isGivenUp(began: number): boolean {
    const now = performance.now();
    const since = outage === null || began - outage.last > waitMs ? now : outage.since;
    outage = { since, last: now };
    return began - since >= waitMs;
  }

  function reconnect(): Promise<Connection> {
    const made = connect(url, { ...options, answerMs, lockMs: lockTimeoutMs });
    connecting = made;
    // Whatever the error was, the next caller tries again.
    made.catch(() => {
      if (connecting === made) connecting = null;
    });
    return made;
  }

  function drop(): void {
    connecting?.then(
      (connection) => connection.end(),
      () => undefined, // it never opened, and its caller got the error
    );
    connecting = null;
  }
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 20 + Math.random() * 80);
  });
}
