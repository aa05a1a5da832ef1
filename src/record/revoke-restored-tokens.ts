import { all, first, type Work, write } from "./query.ts";
import { toColumn } from "./text.ts";

const selectValid = `
  select token_id from tokens where (revoked_at is null or revoked_at > ?1) and (expires_at is null or expires_at > ?1)`;
const revokeAll = `update tokens set revoked_at = ?1 where revoked_at is null or revoked_at > ?1`;
const setRestoredAt = `update store set restored_at = ?`;

/**
 * Revokes all tokens of a restored backup, because the backup does not know which of them were revoked after it was made.
 * Also stores the time of the restore. The admin token of a fleet and attempt tokens are derived from it, so that tokens
 * created before the restore are no longer valid.
 */
export function* revokeRestoredTokens(made_at: string, now: Date): Work<number> {
  const restored_at = now.toISOString();
  // Use the earlier time: a coordinator whose clock is behind would accept the tokens until then.
  const revokedAt = toColumn(made_at < restored_at ? made_at : restored_at);
  const validTokens = yield all(selectValid, revokedAt);
  yield write(revokeAll, revokedAt);
  yield write(setRestoredAt, restored_at);
  return validTokens.length;
}

export function* readRestoredAt(): Work<string | null> {
  const [row] = yield first("select restored_at from store");
  return typeof row?.["restored_at"] === "string" ? row["restored_at"] : null;
}
