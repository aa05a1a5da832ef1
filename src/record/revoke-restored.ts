import { all, first, type Work, write } from "./query.ts";
import { toColumn } from "./text.ts";

const selectGood = `
  select token_id from tokens where (revoked_at is null or revoked_at > ?1) and (expires_at is null or expires_at > ?1)`;
const revokeAll = `update tokens set revoked_at = ?1 where revoked_at is null or revoked_at > ?1`;
const noteRestore = `update store set restored_at = ?`;

/**
 * A backup does not know which of its tokens were revoked after it was made, so none of them is good any more. The time is
 * kept: the admin token that follows from a fleet's secret must not be one that was revoked since either.
 */
export function* revokeRestored(made_at: string, now: Date): Work<number> {
  const restored_at = now.toISOString();
  // the earlier: a coordinator whose clock is behind this one must not take them for good until then
  const at = toColumn(made_at < restored_at ? made_at : restored_at);
  const good = yield all(selectGood, at);
  yield write(revokeAll, at);
  yield write(noteRestore, restored_at);
  return good.length;
}

export function* readRestoredAt(): Work<string | null> {
  const [row] = yield first("select restored_at from store");
  return typeof row?.["restored_at"] === "string" ? row["restored_at"] : null;
}
