import { all, type Work, write } from "./query.ts";
import type { RecordStore } from "./record-store.ts";
import { toColumn } from "./text.ts";

const atOnce = 500;

// Bearer tokens of admins stay. A coordinator has its own from its secret or from a file, and stores it where the record knows
// nothing of it: one that was revoked would be good again.
const selectEnded = `
  select token_id from tokens
  where token_id > ?1 and (role <> 'admin' or kind in ('link', 'browser')) and (revoked_at < ?2 or expires_at < ?2 or used_at < ?2)
  order by token_id limit ?3`;
const deleteToken = `delete from tokens where token_id = ?`;

/** Removes tokens that were revoked, expired or used up before a time. What has ended stays so: nobody revives it meanwhile. */
export async function pruneTokens(store: RecordStore, before: Date): Promise<{ tokens: number }> {
  let tokens = 0;
  for (let after = ""; ;) {
    const ended = await store.engine.read(() => endedTokens(after, before));
    if (ended.length > 0) await store.engine.write(() => deleteTokens(ended));
    tokens += ended.length;
    after = ended.at(-1) ?? after;
    if (ended.length < atOnce) return { tokens };
  }
}

/** Their ids, as they are stored. */
function* endedTokens(after: string, before: Date): Work<string[]> {
  const rows = yield all(selectEnded, after, toColumn(before.toISOString()), atOnce);
  return rows.map((row) => String(row["token_id"]));
}

function* deleteTokens(ids: readonly string[]): Work<void> {
  for (const id of ids) yield write(deleteToken, id);
}
