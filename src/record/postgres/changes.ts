import type { Demands } from "../../model/run.ts";
import type { Change } from "../../model/store.ts";
import type { Changed } from "../transaction.ts";
import { type Client, connect } from "./client.ts";

export interface Changes {
  listen(listener: (change: Change) => void): () => void;
  publish(changed: Changed): void;
  /** What others are told of a commit of ours. */
  notice(no: number, changed: Changed): string;
  /** null: longer than can be told. */
  passing(text: string): string | null;
  othersTell(listener: (text: string) => void): () => void;
  /** Given how many commits there are: were we told of all of them? */
  compare(commits: number): void;
  stop(): void;
}

interface Notice {
  from: string;
  no: number;
  /** null: too many to name. */
  runs: string[] | null;
  /** And how many runs of each; null: too many to name. */
  claimable: [Demands, number][] | null;
  resumed?: [Demands, number][];
  ordered: string[];
  schedules?: true;
}

/** What is kept nowhere. */
interface Passing {
  from: string;
  text: string;
}

export const liveChannel = "drover_live";

/** PostgreSQL takes no longer ones. */
const longestNotice = 7900;

const anything: Change = { runs: null, claimable: [], ordered: new Set(), foreign: true };

/**
 * Commits of other coordinators come as notices over a connection that does nothing else. Each has its number, so that
 * one that went missing shows; and while there is no such connection, nobody knows what was written.
 */
export function openChanges(url: string, me: string, onFault: (fault: unknown) => void): Changes {
  const listeners = new Set<(change: Change) => void>();
  const hearers = new Set<(text: string) => void>();
  let last: number | null = null;
  let missing: number | null = null;
  let stopped = false;
  let client: Client | null = null;
  let giveUp: (fault: Error) => void = () => undefined;
  void follow();
  return {
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    publish: (changed) => tell({ ...changed, foreign: false }),
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
    passing(text) {
      const notice = JSON.stringify({ from: me, text } satisfies Passing);
      return Buffer.byteLength(notice) <= longestNotice ? notice : null;
    },
    othersTell(listener) {
      hearers.add(listener);
      return () => hearers.delete(listener);
    },
    compare(commits) {
      if (last === null) {
        // Nothing was heard since the connection was made, which may be because it is deaf.
        last = commits;
        tell(anything);
      } else if (commits <= last) missing = null;
      else if (missing !== null && last < missing) giveUp(new Error("notices went missing"));
      else missing = commits;
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
    tell(anything);
  }

  function heard(channel: string, text: string): void {
    try {
      understand(channel, text);
    } catch (fault) {
      // Anybody who may connect to this database may say anything there.
      onFault(fault);
      tell(anything);
    }
  }

  function understand(channel: string, text: string): void {
    if (channel === liveChannel) {
      // Written by `passing`.
      const { from, text: passed } = JSON.parse(text) as Passing;
      if (typeof passed !== "string") throw new Error("a notice that no Drover has sent");
      if (from !== me) for (const hearer of hearers) hearer(passed);
      return;
    }
    // Written by `notice`, here or in another coordinator.
    const { from, no, runs, claimable, resumed = [], ordered, schedules } = JSON.parse(text) as Notice;
    if (!Number.isInteger(no) || !Array.isArray(ordered)) throw new Error("a notice that no Drover has sent");
    const gap = last !== null && no !== last + 1;
    last = no;
    if (gap || (from !== me && claimable === null)) tell(anything);
    else if (from !== me) {
      const change = { runs: runs && new Set(runs), claimable: spread(claimable ?? []), ordered: new Set(ordered) };
      tell({ ...change, resumed: spread(resumed), ...(schedules ? { schedules } : {}), foreign: false });
    }
  }

  async function follow(): Promise<void> {
    while (!stopped) {
      try {
        await listening();
      } catch (fault) {
        if (!stopped) onFault(fault);
      }
      client?.end();
      client = null;
      if (!stopped) await delay();
    }
  }

  /** Until the connection breaks. */
  function listening(): Promise<void> {
    return new Promise((resolve, reject) => {
      giveUp = reject;
      connect(url, { onBroken: reject })
        .then(async (made) => {
          client = made;
          if (stopped) {
            made.end();
            return resolve();
          }
          made.onNotice(heard);
          await made.exec(`listen drover; listen ${liveChannel}`);
          unknown();
        })
        .catch(reject);
    });
  }
}

/** Of a commit that nobody waits for: it counts all the same. */
export function emptyNotice(from: string, no: number): string {
  return JSON.stringify({ from, no, runs: [], claimable: [], ordered: [] } satisfies Notice);
}

/** Waiters are woken one for each run: more than this many wait nowhere. */
const mostWoken = 10_000;

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

function spread(claimable: readonly [Demands, number][]): Demands[] {
  return claimable.flatMap(([demands, count]) => Array.from({ length: Math.min(count, mostWoken) }, () => demands));
}

function delay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 100 + Math.random() * 200);
  });
}
