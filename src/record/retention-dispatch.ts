import { pruneInPages, type Unused } from "./prune-in-pages.ts";
import { all, type Work } from "./query.ts";
import type { RecordStore } from "./record-store.ts";
import { pruneAgentRevs, pruneDemands } from "./retention-leftovers.ts";
import { pruneRuns } from "./retention.ts";
import { toColumn } from "./text.ts";

const keysAtOnce = 1000;

/** The oldest, up to the time of the last of so many. */
const deleteKeys = `
  delete from idempotency
  where at < ?1 and at <= coalesce((select at from idempotency where at < ?1 order by at limit 1 offset ?2), ?1)
  returning 1 as gone`;

/** A fork goes on from the session it was forked from in every attempt, until it has ended. */
const sessions: Unused = {
  table: "sessions",
  key: "session_id",
  from: "",
  condition: `last_used_at < ?3
    and not exists (select 1 from runs where runs.session_id = sessions.session_id)
    and not exists (
      select 1 from runs fork where fork.forked_from = sessions.session_id and fork.forked_from is not null
        and fork.status in ('pending', 'claimed', 'running', 'waiting', 'parked', 'stopping'))`,
};

/** Finished runs from before a time with their events, then the keys, sessions, demands and agents that only they used. */
export async function pruneDispatch(store: RecordStore, before: Date): Promise<{ runs: number; sessions: number }> {
  const { engine } = store;
  const time = toColumn(before.toISOString());
  const { runs } = await pruneRuns(store, before);
  while ((await engine.write(() => deletePortion(time))) >= keysAtOnce);
  const forgotten = await pruneInPages(engine, sessions, [time]);
  await pruneDemands(engine);
  if (runs > 0) await pruneAgentRevs(engine);
  return { runs, sessions: forgotten };
}

function* deletePortion(time: string): Work<number> {
  return (yield all(deleteKeys, time, keysAtOnce - 1)).length;
}
