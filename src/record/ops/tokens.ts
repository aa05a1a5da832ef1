import {
  createDerivedTokenId,
  getTokenRejection,
  type PutToken,
  type RevokeSubject,
  type RevokeToken,
  getRootTokenId,
  type RotateToken,
  type Token,
  type TokenResult,
  type UseEnrolment,
  type UseLink,
} from "../../model/token.ts";
import { all, first, write, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

const textColumns = [
  "token_id",
  "kind",
  "role",
  "subject",
  "label",
  "created_by",
  "created_at",
  "expires_at",
  "revoked_at",
  "used_at",
] as const;

const selectExisting = `select 1 from tokens where token_id = ? or hash = ?`;
const insert = `
  insert into tokens (hash, ${textColumns.join(", ")}) values (?, ${textColumns.map(() => "?").join(", ")})`;
const revoke = `
  update tokens set revoked_at = case when revoked_at < ?1 then revoked_at else ?1 end
  where token_id = ?2 returning revoked_at`;
// '/' is the character after '.'
const revokeDerived = `
  update tokens set revoked_at = case when revoked_at < ?1 then revoked_at else ?1 end
  where token_id > ?2 || '.' and token_id < ?2 || '/'`;
const selectById = `select * from tokens where token_id = ?`;
const selectTokensOfSubject = `select * from tokens where subject = ? order by token_id`;
const markUsed = `update tokens set used_at = ? where hash = ?`;
export const selectToken = `select * from tokens where hash = ?`;

export function* putToken({ token, hash }: PutToken): Work<TokenResult> {
  const [existing] = yield first(selectExisting, toColumn(token.token_id), hash);
  if (existing !== undefined) return { ok: false, conflict: "exists" };
  yield write(insert, hash, ...textColumns.map((name) => toColumn(token[name])));
  return { ok: true, op: "put_token" };
}

export function* revokeToken(op: RevokeToken): Work<TokenResult> {
  const found = yield* revokeWithDerived(op.token_id, op.at);
  return found === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "revoke_token" };
}

/**
 * Revokes at the earlier of the store's time and `op.at`. A later rotation checks at a time no earlier than the store's, so
 * it sees the token as revoked.
 */
export function* revokeSubject({ now }: Transaction, op: RevokeSubject): Work<TokenResult> {
  const storeTime = now.toISOString();
  const at = storeTime < op.at ? storeTime : op.at;
  const tokens = (yield all(selectTokensOfSubject, toColumn(op.subject))).map(toToken);
  const toRevoke = tokens.filter((token) => op.roles.includes(token.role) && getTokenRejection(token, at) === null);
  for (const { token_id } of toRevoke) yield* revokeWithDerived(token_id, at);
  return { ok: true, op: "revoke_subject", token_ids: toRevoke.map(({ token_id }) => token_id) };
}

export function* useEnrolment(tx: Transaction, op: UseEnrolment): Work<TokenResult> {
  const [row] = yield first(selectToken, op.hash);
  const enrolment = row === undefined ? null : toToken(row);
  if (enrolment === null || enrolment.kind !== "enrolment") return { ok: false, conflict: "not_found" };
  if (enrolment.used_at !== null) return { ok: false, conflict: "used" };
  const rejection = getTokenRejection(enrolment, pickLater(tx, op.at));
  if (rejection !== null) return { ok: false, conflict: rejection };
  const { role, subject } = enrolment;
  const put = yield* putToken({ op: "put_token", token: { ...op.token, role, subject }, hash: op.token_hash });
  if (!put.ok) return put;
  yield write(markUsed, toColumn(op.at), op.hash);
  return { ok: true, op: "use_enrolment", subject };
}

export function* useLink(tx: Transaction, op: UseLink): Work<TokenResult> {
  const [row] = yield first(selectToken, op.hash);
  const link = row === undefined ? null : toToken(row);
  if (link === null || link.kind !== "link") return { ok: false, conflict: "not_found" };
  if (link.used_at !== null) return { ok: false, conflict: "used" };
  const [rootRow] = yield first(selectById, toColumn(getRootTokenId(link.token_id)));
  if (rootRow === undefined) return { ok: false, conflict: "revoked" };
  const root = toToken(rootRow);
  const at = pickLater(tx, op.at);
  const rejection = getTokenRejection(root, at) ?? getTokenRejection(link, at);
  if (rejection !== null) return { ok: false, conflict: rejection };
  const token: Token = {
    ...op.token,
    token_id: createDerivedTokenId(root.token_id, op.id),
    role: link.role,
    subject: link.subject,
    expires_at: pickEarlier(op.token.expires_at, root.expires_at),
    revoked_at: root.revoked_at,
  };
  const put = yield* putToken({ op: "put_token", token, hash: op.token_hash });
  if (!put.ok) return put;
  yield write(markUsed, toColumn(op.at), op.hash);
  return { ok: true, op: "use_link", token };
}

export function* rotateToken(tx: Transaction, op: RotateToken): Work<TokenResult> {
  const [row] = yield first(selectById, toColumn(op.token_id));
  const old = row === undefined ? null : toToken(row);
  if (old === null || old.kind !== "access") return { ok: false, conflict: "not_found" };
  const rejection = getTokenRejection(old, pickLater(tx, op.at));
  if (rejection !== null) return { ok: false, conflict: rejection };
  const { role, subject, label } = old;
  const put = yield* putToken({ op: "put_token", token: { ...op.token, role, subject, label }, hash: op.token_hash });
  if (!put.ok) return put;
  const revoked = yield* revokeWithDerived(op.token_id, op.ends_at);
  return { ok: true, op: "rotate_token", ends_at: fromColumn(String(revoked?.["revoked_at"])) };
}

/** Revokes a token and the tokens derived from it. Returns the token's row. */
function* revokeWithDerived(token_id: string, at: string): Work<Row | undefined> {
  const [found] = yield first(revoke, toColumn(at), toColumn(token_id));
  yield write(revokeDerived, toColumn(at), toColumn(token_id));
  return found;
}

function pickEarlier(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

/** The later of both times: a coordinator whose clock is behind must not derive a new token from one that has ended. */
function pickLater({ now }: Transaction, at: string): string {
  const storeTime = now.toISOString();
  return storeTime > at ? storeTime : at;
}

export function toToken(row: Row): Token {
  const token: Record<string, string | null> = {};
  for (const name of textColumns) {
    const value = row[name];
    token[name] = typeof value === "string" ? fromColumn(value) : null;
  }
  // putToken wrote every field from a Token, under the same names.
  return token as unknown as Token;
}
