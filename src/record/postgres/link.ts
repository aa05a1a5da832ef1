import { type Client, connect } from "./client.ts";
import { away, hostFault, isAway } from "./faults.ts";
import { longestAnswerMs, longestLockMs } from "./limits.ts";

/** A connection that is made when it is needed, and made anew when it has broken. */
export interface Link {
  /**
   * Tries again over a new connection while the database is away; so only for what may begin again. Who comes later into
   * an outage waits the less, and after it has lasted `waitMs` not at all: an answer that says so is worth more than one
   * that nobody waits for any more.
   */
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
}

interface LinkOptions {
  url: string;
  waitMs: number;
  idleInTransactionMs?: number;
  byIndexOnly?: true;
  /** After which a server that says nothing is taken to be away. */
  answerMs?: number;
}

export function openLink({ url, waitMs, answerMs = longestAnswerMs, ...options }: LinkOptions): Link {
  let connecting: Promise<Client> | null = null;
  let closed = false;
  let outage: { since: number; last: number } | null = null;
  return {
    async use(work) {
      for (;;) {
        const began = performance.now();
        const mine = connecting ?? connectAnew();
        try {
          const done = await work(await mine);
          outage = null;
          return done;
        } catch (fault) {
          if (!isAway(fault)) throw hostFault(fault, url);
          if (connecting === mine) drop();
          if (closed || isOver(began)) throw away(url, fault);
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
   * Whether a try that was in vain began after the outage had lasted long enough. That began when the first try in vain
   * ended, and who has slept meanwhile, as this process itself may have, tries once more. A fault of long ago, with
   * nothing asked since, is another matter.
   */
  function isOver(began: number): boolean {
    const now = performance.now();
    const since = outage === null || began - outage.last > waitMs ? now : outage.since;
    outage = { since, last: now };
    return began - since >= waitMs;
  }

  function connectAnew(): Promise<Client> {
    const made = connect(url, { ...options, answerMs, lockMs: longestLockMs });
    connecting = made;
    // Whatever stood in its way, the next one tries again.
    made.catch(() => {
      if (connecting === made) connecting = null;
    });
    return made;
  }

  function drop(): void {
    connecting?.then(
      (client) => client.end(),
      () => undefined, // it never came to be, which whoever asked for it was told
    );
    connecting = null;
  }
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 20 + Math.random() * 80);
  });
}
