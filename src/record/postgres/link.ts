import { type Client, connect } from "./client.ts";
import { away, hostFault, isAway } from "./faults.ts";

/** A connection that is made when it is needed, and made anew when it has broken. */
export interface Link {
  /** Tries again over a new connection while the database is away, for as long as it may; so only for what may begin again. */
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
}

interface LinkOptions {
  url: string;
  waitMs: number;
  idleInTransactionMs?: number;
  byIndexOnly?: true;
}

export function openLink({ url, waitMs, ...options }: LinkOptions): Link {
  let connecting: Promise<Client> | null = null;
  let closed = false;
  return {
    async use(work) {
      const deadline = performance.now() + waitMs;
      for (;;) {
        const mine = (connecting ??= connect(url, options));
        try {
          return await work(await mine);
        } catch (fault) {
          if (!isAway(fault)) throw hostFault(fault, url);
          if (connecting === mine) drop();
          if (closed || performance.now() >= deadline) throw away(url, fault);
        }
        await delay();
      }
    },
    close() {
      closed = true;
      drop();
    },
  };

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
