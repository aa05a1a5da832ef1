import type { Demands } from "../../model/run.ts";
import type { Change } from "../../model/store.ts";
import type { ChangeSet } from "../transaction.ts";
import { type Connection, connect } from "./connection.ts";

export interface Changes {
  listen(listener: (change: Change) => void): () => void;
  publish(changes: ChangeSet): void;
  /** The notification for other coordinators about a commit of this one. */
  notice(no: number, changes: ChangeSet): string;
  /** The notification for a message; null if it is too long. */
  broadcastNotice(text: string): string | null;
  onBroadcast(listener: (text: string) => void): () => void;
  /** Compares with the number of commits in the database, to find out whether notifications were lost. */
  compare(commits: number): void;
  stop(): void;
}

interface Notice {
  from: string;
  no: number;
  /** null if there are too many to list. */
  runs: string[] | null;
  /** Demands with their number of runs; null if there are too many to list. */
  claimable: [Demands, number][] | null;
  resumed?: [Demands, number][];
  ordered: string[];
  schedules?: true;
}

/** A message that is not stored. */
interface Broadcast {
  from: string;
  text: string;
}

export const liveChannel = "drover_live";

/** PostgreSQL limits the length of a notification. */
const longestNotice = 7900;

const anyChange: Change = { runs: null, claimable: [], ordered: new Set(), foreign: true };

/**
 * Receives the commits of other coordinators as notifications over a dedicated connection. Each has a number, so a lost one
 * is noticed. While the connection is down, listeners have to assume that anything may have changed.
 */
export function openChanges(url: string, me: string, onFault: (fault: unknown) => void): Changes {
  const listeners = new Set<(change: Change) => void>();
  const broadcastListeners = new Set<(text: string) => void>();
  let last: number | null = null;
  let missing: number | null = null;
  let stopped = false;
  let connection: Connection | null = null;
  let disconnect: (fault: Error) => void = () => undefined;
  void keepListening();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish: (changes) => notifyListeners({ ...changes, foreign: false }),
    notice(no, { runs, claimable, resumed, ordered, schedules }) {
      const known: Notice = {
        from: me,
        no,
        runs: [...runs],
        claimable: counted(claimable),
        ordered: [...ordered],
        ...(schedules ? { schedules } : {}),
      };
      const whole = resumed === undefined ? known : { ...known, resumed: counted(resumed) };
      for (const notice of [whole, { ...whole, runs: null }]) {
        const text = JSON.stringify(notice);
        if (Buffer.byteLength(text) <= longestNotice) return text;
      }
      return JSON.stringify({ from: me, no, runs: null, claimable: null, ordered: [] } satisfies Notice);
    },
    broadcastNotice(text) {
      const notice = JSON.stringify({ from: me, text } satisfies Broadcast);
      return Buffer.byteLength(notice) <= longestNotice ? notice : null;
    },
    onBroadcast(listener) {
      broadcastListeners.add(listener);
      return () => broadcastListeners.delete(listener);
    },
    compare(commits) {
      if (last === null) {
        // No notification since connecting. The connection may be dead, so assume that anything has changed.
        last = commits;
        notifyListeners(anyChange);
      } else if (commits <= last) missing = null;
      else if (missing !== null && last < missing) disconnect(new Error("notifications were lost"));
      else missing = commits;
    },
    stop() {
      stopped = true;
      connection?.end();
    },
  };

  function notifyListeners(change: Change): void {
    for (const listener of listeners) listener(change);
  }

  function resetAfterConnect(): void {
    last = null;
    missing = null;
    notifyListeners(anyChange);
  }

  function receive(channel: string, text: string): void {
    try {
      handle(channel, text);
    } catch (error) {
      // Anyone with access to this database can send anything on the channel.
      onFault(error);
      notifyListeners(anyChange);
    }
  }

  function handle(channel: string, text: string): void {
    if (channel === liveChannel) {
      // `broadcastNotice` wrote it.
      const { from, text: passed } = JSON.parse(text) as Broadcast;
      if (typeof passed !== "string") throw new Error("received a notification that no Drover has sent");
      if (from !== me) for (const listener of broadcastListeners) listener(passed);
      return;
    }
    // `notice` wrote it, here or in another coordinator.
    const { from, no, runs, claimable, resumed = [], ordered, schedules } = JSON.parse(text) as Notice;
    if (!Number.isInteger(no) || !Array.isArray(ordered))
      throw new Error("received a notification that no Drover has sent");
    const gap = last !== null && no !== last + 1;
    last = no;
    if (gap || (from !== me && claimable === null)) notifyListeners(anyChange);
    else if (from !== me) {
      const change = { runs: runs && new Set(runs), claimable: expand(claimable ?? []), ordered: new Set(ordered) };
      notifyListeners({ ...change, resumed: expand(resumed), ...(schedules ? { schedules } : {}), foreign: false });
    }
  }

  async function keepListening(): Promise<void> {
    while (!stopped) {
      try {
        await listenOnce();
      } catch (error) {
        if (!stopped) onFault(error);
      }
      connection?.end();
      connection = null;
      if (!stopped) await delay();
    }
  }

  /** Listens until the connection breaks. */
  function listenOnce(): Promise<void> {
    return new Promise((resolve, reject) => {
      disconnect = reject;
      connect(url, { onBroken: reject })
        .then(async (made) => {
          connection = made;
          if (stopped) {
            made.end();
            return resolve();
          }
          made.onNotice(receive);
          await made.exec(`listen drover; listen ${liveChannel}`);
          resetAfterConnect();
        })
        .catch(reject);
    });
  }
}

/** For a commit that no listener cares about. It still has to be numbered. */
export function emptyNotice(from: string, no: number): string {
  return JSON.stringify({ from, no, runs: [], claimable: [], ordered: [] } satisfies Notice);
}

/** One waiter is woken per run; there are never more waiters than this. */
const maxWaiters = 10_000;

function counted(claimable: readonly Demands[]): [Demands, number][] {
  const counts = new Map<string, [Demands, number]>();
  for (const demands of claimable) {
    const key = JSON.stringify(demands);
    const known = counts.get(key);
    if (known === undefined) counts.set(key, [demands, 1]);
    else known[1] += 1;
  }
  return [...counts.values()];
}

function expand(claimable: readonly [Demands, number][]): Demands[] {
  return claimable.flatMap(([demands, count]) => Array.from({ length: Math.min(count, maxWaiters) }, () => demands));
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 100 + Math.random() * 200);
  });
}
