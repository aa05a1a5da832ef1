import type { SqliteStore } from "./open.ts";
import { pruneRuns } from "./retention.ts";
import { toColumn } from "./text.ts";
import { underWriteLock } from "./write-lock.ts";

const atOnce = 1000;

const deleteKeys = `
  delete from idempotency where (subject, key) in (select subject, key from idempotency where at < ? limit ?)`;
const deleteSessions = `
  delete from sessions where session_id in (
    select session_id from sessions where last_used_at < ?
      and not exists (select 1 from runs where runs.session_id = sessions.session_id) limit ?)`;

/** Finished runs from before a time with their events, then the keys and sessions that only they used. */
export async function pruneDispatch(store: SqliteStore, before: Date): Promise<{ runs: number; sessions: number }> {
  const { connection, lockWaitMs } = store;
  const { runs } = await pruneRuns(store, before);
  await inPortions(deleteKeys);
  return { runs, sessions: await inPortions(deleteSessions) };

  async function inPortions(statement: string): Promise<number> {
    for (let total = 0; ;) {
      const changes = await underWriteLock(connection, lockWaitMs, () =>
        Number(connection.sql(statement).run(toColumn(before.toISOString()), atOnce).changes),
      );
      total += changes;
      if (changes < atOnce) return total;
    }
  }
}
