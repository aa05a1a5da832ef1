import type { Change } from "../../model/store.ts";
import type { Demands } from "../../model/run.ts";
import type { Changed } from "../transaction.ts";
import { type Client, connect } from "./client.ts";

export interface Changes {
  listen(listener: (change: Change) => void): () => void;
  publish(changed: Changed): void;
  /** What others are told of a commit of ours. */
  notice(no: number, changed: Changed): string;
  /** Whether all commits that there are were told of. */
  compare(commits: number): void;
  stop(): void;
}

/** PostgreSQL takes no longer ones. */
const longestNotice = 7900;

/** `all`: there was too much to tell. */
type Notice = { from: string; no: number } & ({ all: true } | { runs: string[]; claimable: Demands[]; ordered: string[] });

/**
 * Commits of other coordinators come as notices over a connection that does nothing else. Each has its number, so that
 * one that went missing shows; and while there is no such connection, nobody knows what was written.
 */
export function openChanges(url: string, me: string, onFault: (fault: unknown) => void): Changes {
  const listeners = new Set<(change: Change) => void>();
  let last: number | null = null;
  let missing: number | null = null;
  let stopped = false;
  let client: Client | null = null;
  void follow();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish: (changed) => tell({ ...changed, foreign: false }),
    notice(no, { runs, claimable, ordered }) {
      const demands = [...new Map(claimable.map((one) => [JSON.stringify(one), one])).values()];
      const whole: Notice = { from: me, no, runs: [...runs], claimable: demands, ordered: [...ordered] };
      const text = JSON.stringify(whole);
      return Buffer.byteLength(text) <= longestNotice ? text : JSON.stringify({ from: me, no, all: true });
    },
    compare(commits) {
      if (last === null || commits <= last) missing = null;
      else if (missing === null) missing = commits;
      else if (last < missing) unknown();
    },
    stop() {
      stopped = true;
      client?.end();
    },
  };

  function tell(change: Change): void {
    for (const listener of listeners) listener(change);
  }

  function unknown(): void {
    last = null;
    missing = null;
    tell({ runs: new Set(), claimable: [], ordered: new Set(), foreign: true });
  }

  function heard(text: string): void {
    // Written by `notice`, here or in another coordinator.
    const notice = JSON.parse(text) as Notice;
    const gap = last !== null && notice.no !== last + 1;
    last = notice.no;
    if (notice.from !== me && !gap && !("all" in notice)) {
      const { runs, claimable, ordered } = notice;
      tell({ runs: new Set(runs), claimable, ordered: new Set(ordered), foreign: false });
    } else if (notice.from !== me || gap) {
      tell({ runs: new Set(), claimable: [], ordered: new Set(), foreign: true });
    }
  }

  async function follow(): Promise<void> {
    while (!stopped) {
      try {
        await new Promise<void>((resolve, reject) => {
          connect(url, { onBroken: reject })
            .then(async (made) => {
              client = made;
              if (stopped) return resolve();
              made.onNotice(heard);
              await made.exec("listen drover");
              unknown();
            })
            .catch(reject);
        });
      } catch (fault) {
        if (!stopped) onFault(fault);
      }
      client = null;
      if (stopped) return;
      await new Promise((resolve) => {
        setTimeout(resolve, 100 + Math.random() * 200);
      });
    }
  }
}
