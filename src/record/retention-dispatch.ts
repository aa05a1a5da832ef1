import { all, type Work } from "./query.ts";
import type { RecordStore } from "./record-store.ts";
import { pruneRuns } from "./retention.ts";
import { toColumn } from "./text.ts";

const atOnce = 1000;

const deleteKeys = `
  delete from idempotency where (subject, key) in (select subject, key from idempotency where at < ? limit ?)
  returning 1 as gone`;
const deleteSessions = `
  delete from sessions where session_id in (
    select session_id from sessions where last_used_at < ?
      and not exists (select 1 from runs where runs.session_id = sessions.session_id) limit ?)
  returning 1 as gone`;

/** Finished runs from before a time with their events, then the keys and sessions that only they used. */
export async function pruneDispatch(store: RecordStore, before: Date): Promise<{ runs: number; sessions: number }> {
  const { runs } = await pruneRuns(store, before);
  await inPortions(deleteKeys);
  return { runs, sessions: await inPortions(deleteSessions) };

  async function inPortions(statement: string): Promise<number> {
    for (let total = 0; ;) {
      const gone = await store.engine.write(() => deletePortion(statement, before));
      total += gone;
      if (gone < atOnce) return total;
    }
  }
}

function* deletePortion(statement: string, before: Date): Work<number> {
  return (yield all(statement, toColumn(before.toISOString()), atOnce)).length;
}
