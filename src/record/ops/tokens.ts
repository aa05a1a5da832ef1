import type { PutToken, RevokeToken, Token, TokenResult, UseEnrolment } from "../../model/token.ts";
import type { Row } from "../sqlite/driver.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

const texts = [
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

const known = `select 1 from tokens where token_id = ? or hash = ?`;
const insert = `
  insert into tokens (hash, ${texts.join(", ")}) values (?, ${texts.map(() => "?").join(", ")})`;
const revoke = `
  update tokens set revoked_at = coalesce(revoked_at, ?) where token_id = ? returning token_id`;
const use = `update tokens set used_at = ? where hash = ?`;
export const selectToken = `select * from tokens where hash = ?`;

export function putToken(tx: Transaction, { token, hash }: PutToken): TokenResult {
  if (tx.sql(known).get(toColumn(token.token_id), hash) !== undefined) return { ok: false, conflict: "exists" };
  tx.sql(insert).run(hash, ...texts.map((name) => toColumn(token[name])));
  return { ok: true, op: "put_token" };
}

export function revokeToken(tx: Transaction, op: RevokeToken): TokenResult {
  const found = tx.sql(revoke).get(toColumn(op.at), toColumn(op.token_id));
  return found === undefined ? { ok: false, conflict: "not_found" } : { ok: true, op: "revoke_token" };
}

export function useEnrolment(tx: Transaction, op: UseEnrolment): TokenResult {
  const row = tx.sql(selectToken).get(op.hash);
  const enrolment = row === undefined ? null : tokenFromRow(row);
  if (enrolment === null || enrolment.kind !== "enrolment") return { ok: false, conflict: "not_found" };
  if (enrolment.used_at !== null) return { ok: false, conflict: "used" };
  if (enrolment.revoked_at !== null) return { ok: false, conflict: "revoked" };
  if (enrolment.expires_at !== null && op.at >= enrolment.expires_at) return { ok: false, conflict: "expired" };
  const { role, subject } = enrolment;
  const put = putToken(tx, { op: "put_token", token: { ...op.token, role, subject }, hash: op.token_hash });
  if (!put.ok) return put;
  tx.sql(use).run(toColumn(op.at), op.hash);
  return { ok: true, op: "use_enrolment", subject };
}

export function tokenFromRow(row: Row): Token {
  const token: Record<string, string | null> = {};
  for (const name of texts) {
    const value = row[name];
    token[name] = typeof value === "string" ? fromColumn(value) : null;
  }
  // Every field was written from a Token by putToken, under the same names.
  return token as unknown as Token;
}
