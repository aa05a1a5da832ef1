import { statusIn } from "./moves/statuses.ts";
import { deleteSessionState } from "./ops/save-session.ts";
import { pruneInPages, type PruneTarget } from "./prune-in-pages.ts";
import { all, type SqlValue, type Work } from "./query.ts";
import type { RecordStore } from "./record-store.ts";
import { pruneAgentRevs, pruneDemands } from "./retention-leftovers.ts";
import { pruneRuns } from "./retention.ts";
import { toColumn } from "./text.ts";

const keysPerBatch = 1000;

/** Deletes a batch of the oldest keys. Keys with the same time are deleted together. */
const deleteKeys = `
  delete from idempotency
  where at < ?1 and at <= coalesce((select at from idempotency where at < ?1 order by at limit 1 offset ?2), ?1)
  returning 1 as gone`;

/**
 * Sessions last used before ?3, and sessions without runs, last used before ?4, that nothing can resume: those of
 * procedural runs and those for which the executor never reported an id. An open fork keeps the session it was forked from,
 * because every attempt reads it.
 */
const sessionTarget: PruneTarget = {
  table: "sessions",
  key: "session_id",
  from: "",
  condition: `(last_used_at < ?3 or (last_used_at < ?4 and (executor_session_id is null or executor_session_id = session_id)
      and not exists (select 1 from runs where runs.session_id = sessions.session_id)))
    and not exists (
      select 1 from runs where runs.session_id = sessions.session_id
        and ${statusIn("open", "runs.status")})
    and not exists (
      select 1 from runs fork where fork.forked_from = sessions.session_id and fork.forked_from is not null
        and ${statusIn("open", "fork.status")})`,
  returning: "session_id",
};

/** Keeps slots whose run waits for another run: the slot releases it. */
const deleteSlots = `
  delete from schedule_slots
  where at < ?1 and waits_for is null
    and at <= coalesce((select at from schedule_slots where at < ?1 and waits_for is null order by at limit 1 offset ?2), ?1)
  returning 1 as gone`;

const deleteUsage = `
  delete from usage_sessions
  where day < ?1 and day <= coalesce((select day from usage_sessions where day < ?1 order by day limit 1 offset ?2), ?1)
  returning 1 as gone`;

const deleteHookKeys = `
  delete from hook_keys
  where until < ?1 and until <= coalesce((select until from hook_keys where until < ?1 order by until limit 1 offset ?2), ?1)
  returning 1 as gone`;

/**
 * Removes runs that finished before a given time with their events and usage, then the keys, demands and agents that only
 * they used, and old sessions.
 */
export async function pruneDispatch(
  store: RecordStore,
  cutoff: Date,
  sessionCutoff = cutoff,
): Promise<{ runs: number; sessions: number }> {
  const { engine } = store;
  const time = toColumn(cutoff.toISOString());
  const { runs } = await pruneRuns(store, cutoff);
  while ((await engine.write(() => deleteBatch(deleteKeys, time))) >= keysPerBatch);
  while ((await engine.write(() => deleteBatch(deleteSlots, time))) >= keysPerBatch);
  while ((await engine.write(() => deleteBatch(deleteUsage, time.slice(0, 10)))) >= keysPerBatch);
  const now = store.now().getTime();
  while ((await engine.write(() => deleteBatch(deleteHookKeys, now))) >= keysPerBatch);
  const removedSessions = await pruneInPages(
    engine,
    sessionTarget,
    [toColumn(sessionCutoff.toISOString()), time],
    function* (rows) {
      for (const { session_id } of rows) yield* deleteSessionState(String(session_id));
    },
  );
  await pruneDemands(engine);
  if (runs > 0) await pruneAgentRevs(engine);
  return { runs, sessions: removedSessions };
}

function* deleteBatch(text: string, time: SqlValue): Work<number> {
  return (yield all(text, time, keysPerBatch - 1)).length;
}
