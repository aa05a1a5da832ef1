import type { Demands } from "../../model/run.ts";
import type { Change } from "../../model/store.ts";
import type { ChangeSet } from "../transaction.ts";
import { type Connection, connect } from "./connection.ts";

export interface ChangeNotifier {
  listen(listener: (change: Change) => void): () => void;
  publish(changes: ChangeSet): void;
  /** Builds the notification that tells other coordinators about a commit of this one. */
  createNotice(no: number, changes: ChangeSet): string;
  /** Builds the notification for a message. Returns null if it is too long. */
  createBroadcastNotice(text: string): string | null;
  onBroadcast(listener: (text: string) => void): () => void;
  /** Compares the number of commits in the database with the notifications received, to find lost ones. */
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
const maxNoticeBytes = 7900;

const unknownChange: Change = { runs: null, claimable: [], runnersWithOrders: new Set(), fromOtherProcess: true };

/**
 * Receives the commits of other coordinators as notifications over a dedicated connection. Each has a number, so a lost one
 * is noticed. While the connection is down, listeners have to assume that anything may have changed.
 */
export function openChangeNotifier(url: string, instanceId: string, onError: (error: unknown) => void): ChangeNotifier {
  const listeners = new Set<(change: Change) => void>();
  const broadcastListeners = new Set<(text: string) => void>();
  let lastNo: number | null = null;
  let missingNo: number | null = null;
  let stopped = false;
  let connection: Connection | null = null;
  let disconnect: (error: Error) => void = () => undefined;
  void keepListening();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish: (changes) => notifyListeners({ ...changes, fromOtherProcess: false }),
    createNotice(no, { runs, claimable, resumed, runnersWithOrders, schedules }) {
      const base: Notice = {
        from: instanceId,
        no,
        runs: [...runs],
        claimable: countDemands(claimable),
        ordered: [...runnersWithOrders],
        ...(schedules ? { schedules } : {}),
      };
      const complete = resumed === undefined ? base : { ...base, resumed: countDemands(resumed) };
      for (const notice of [complete, { ...complete, runs: null }]) {
        const text = JSON.stringify(notice);
        if (Buffer.byteLength(text) <= maxNoticeBytes) return text;
      }
      return JSON.stringify({ from: instanceId, no, runs: null, claimable: null, ordered: [] } satisfies Notice);
    },
    createBroadcastNotice(text) {
      const notice = JSON.stringify({ from: instanceId, text } satisfies Broadcast);
      return Buffer.byteLength(notice) <= maxNoticeBytes ? notice : null;
    },
    onBroadcast(listener) {
      broadcastListeners.add(listener);
      return () => broadcastListeners.delete(listener);
    },
    compare(commits) {
      if (lastNo === null) {
        // No notification since connecting. The connection may be dead, so assume that anything has changed.
        lastNo = commits;
        notifyListeners(unknownChange);
      } else if (commits <= lastNo) missingNo = null;
      else if (missingNo !== null && lastNo < missingNo) disconnect(new Error("notifications were lost"));
      else missingNo = commits;
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
    lastNo = null;
    missingNo = null;
    notifyListeners(unknownChange);
  }

  function receive(channel: string, text: string): void {
    try {
      handle(channel, text);
    } catch (error) {
      // Anyone with access to this database can send anything on the channel.
      onError(error);
      notifyListeners(unknownChange);
    }
  }

  function handle(channel: string, text: string): void {
    if (channel === liveChannel) {
      // `createBroadcastNotice` wrote this text.
      const { from, text: message } = JSON.parse(text) as Broadcast;
      if (typeof message !== "string") throw new Error("received a notification that Drover did not send");
      if (from !== instanceId) for (const listener of broadcastListeners) listener(message);
      return;
    }
    // `createNotice` wrote this text, here or in another coordinator.
    const { from, no, runs, claimable, resumed = [], ordered, schedules } = JSON.parse(text) as Notice;
    if (!Number.isInteger(no) || !Array.isArray(ordered))
      throw new Error("received a notification that Drover did not send");
    const gap = lastNo !== null && no !== lastNo + 1;
    lastNo = no;
    if (gap || (from !== instanceId && claimable === null)) notifyListeners(unknownChange);
    else if (from !== instanceId) {
      const change = {
        runs: runs && new Set(runs),
        claimable: repeatDemands(claimable ?? []),
        runnersWithOrders: new Set(ordered),
      };
      notifyListeners({
        ...change,
        resumed: repeatDemands(resumed),
        ...(schedules ? { schedules } : {}),
        fromOtherProcess: false,
      });
    }
  }

  async function keepListening(): Promise<void> {
    while (!stopped) {
      try {
        await listenOnce();
      } catch (error) {
        if (!stopped) onError(error);
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
        .then(async (opened) => {
          connection = opened;
          if (stopped) {
            opened.end();
            return resolve();
          }
          opened.onNotice(receive);
          await opened.exec(`listen drover; listen ${liveChannel}`);
          resetAfterConnect();
        })
        .catch(reject);
    });
  }
}

/** For a commit that no listener cares about. It still has to be numbered. */
export function createEmptyNotice(from: string, no: number): string {
  return JSON.stringify({ from, no, runs: [], claimable: [], ordered: [] } satisfies Notice);
}

/** One waiter is woken per run, and there are never more waiters than this. */
const maxWaiters = 10_000;

function countDemands(claimable: readonly Demands[]): [Demands, number][] {
  const counts = new Map<string, [Demands, number]>();
  for (const demands of claimable) {
    const key = JSON.stringify(demands);
    const entry = counts.get(key);
    if (entry === undefined) counts.set(key, [demands, 1]);
    else entry[1] += 1;
  }
  return [...counts.values()];
}

function repeatDemands(claimable: readonly [Demands, number][]): Demands[] {
  return claimable.flatMap(([demands, count]) => Array.from({ length: Math.min(count, maxWaiters) }, () => demands));
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 100 + Math.random() * 200);
  });
}
