import { all, type Work, write } from "./query.ts";
import type { RecordStore } from "./record-store.ts";
import { toColumn } from "./text.ts";

const tokensPerPage = 500;

// Keep bearer tokens of admins. A coordinator derives its token from its secret or a file and stores it if the record does
// not have it, so removing a revoked one would make it valid again.
const selectEnded = `
  select token_id from tokens
  where token_id > ?1 and (role <> 'admin' or kind in ('link', 'browser')) and (revoked_at < ?2 or expires_at < ?2 or used_at < ?2)
  order by token_id limit ?3`;
const deleteToken = `delete from tokens where token_id = ?`;

/**
 * Removes tokens that were revoked, expired or used up before a given time. Such a token never becomes valid again, so no
 * lock is needed.
 */
export async function pruneTokens(store: RecordStore, cutoff: Date): Promise<{ tokens: number }> {
  let tokens = 0;
  for (let after = ""; ;) {
    const tokenIds = await store.engine.read(() => readEndedTokens(after, cutoff));
    if (tokenIds.length > 0) await store.engine.write(() => deleteTokens(tokenIds));
    tokens += tokenIds.length;
    after = tokenIds.at(-1) ?? after;
    if (tokenIds.length < tokensPerPage) return { tokens };
  }
}

/** Returns encoded token ids. */
function* readEndedTokens(after: string, cutoff: Date): Work<string[]> {
  const rows = yield all(selectEnded, after, toColumn(cutoff.toISOString()), tokensPerPage);
  return rows.map((row) => String(row["token_id"]));
}

function* deleteTokens(ids: readonly string[]): Work<void> {
  for (const id of ids) yield write(deleteToken, id);
}
