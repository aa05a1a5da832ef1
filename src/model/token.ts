/** Who may do what over HTTP. Only the hash of a token is ever stored; the token itself is shown once. */
export const tokenRoles = ["admin", "user", "viewer", "runner"] as const;
export type TokenRole = (typeof tokenRoles)[number];

/**
 * An `access` token is a bearer token. An `enrolment` token does one thing, once: a runner exchanges it
 * for an access token of role `runner` with the same subject. A `link` is what a sign-in link carries: a browser
 * exchanges it, once, for a `browser` token, which it sends as a cookie. Both derive from an access token and end with it.
 */
export const tokenKinds = ["access", "enrolment", "link", "browser"] as const;

export interface Token {
  token_id: string;
  kind: (typeof tokenKinds)[number];
  role: TokenRole;
  /** Whose requests these are: what a run's `created_by` and a runner's `owner` become. */
  subject: string;
  /** A person's own note, e.g. "laptop". */
  label: string | null;
  created_by: string;
  created_at: string;
  /** ISO time from which it is refused; null: never. */
  expires_at: string | null;
  /** ISO time from which it is refused as well. Lies ahead on one that was replaced and is still good for a while. */
  revoked_at: string | null;
  /** Set once on an enrolment token that was exchanged. */
  used_at: string | null;
}

export type TokenOp = PutToken | RevokeToken | RevokeSubject | UseEnrolment | UseLink | RotateToken;

/** `hash` is the lower-case hexadecimal SHA-256 of the whole token text. A known hash or token_id is `exists`. */
export interface PutToken {
  op: "put_token";
  token: Token;
  hash: string;
}

/** Revoking twice keeps the earlier time: one that is to end later can still be ended at once. Ends what derives from it too. */
export interface RevokeToken {
  op: "revoke_token";
  token_id: string;
  at: string;
}

/**
 * Revokes what a subject has that has not ended by `at`, or by the store's time if that is earlier: all there is in the
 * moment it is stored. A token that a rotation or an enrolment makes of one of them is among those, or is never made.
 */
export interface RevokeSubject {
  op: "revoke_subject";
  subject: string;
  /** Those of other roles are left. */
  roles: readonly TokenRole[];
  at: string;
}

/**
 * Marks the enrolment token used and stores the runner's own token, both or neither. Refused where the
 * enrolment is unknown or of another kind (`not_found`), was exchanged before (`used`), is revoked, or
 * `at` is not before its end (`expired`).
 */
export interface UseEnrolment {
  op: "use_enrolment";
  hash: string;
  at: string;
  /** Role and subject are taken from the enrolment token, whatever stands here. */
  token: Token;
  token_hash: string;
}

/**
 * Marks a link used and stores the browser's token, both or neither. Refused as an enrolment is; also where the token
 * that the link derives from has ended.
 */
export interface UseLink {
  op: "use_link";
  hash: string;
  at: string;
  /** Its own part of the new token's id: the whole one begins with the token that the link derives from. */
  id: string;
  /** Role and subject are taken from the link; it ends no later than the token it derives from. */
  token: Omit<Token, "token_id" | "role" | "subject">;
  token_hash: string;
}

/**
 * Stores a token in the place of another, which is revoked as of `ends_at`, or as of the time it was to be revoked at
 * before, if that is earlier: both or neither. Refused where the other is unknown or an enrolment (`not_found`), was
 * revoked as of `at` or before (`revoked`), or `at` is not before its end (`expired`).
 */
export interface RotateToken {
  op: "rotate_token";
  token_id: string;
  at: string;
  ends_at: string;
  /** Role, subject and label are taken from the token it replaces, whatever stands here. */
  token: Token;
  token_hash: string;
}

export type TokenResult =
  | { ok: true; op: "put_token" }
  | { ok: true; op: "revoke_token" }
  /** `token_ids`: of those that it ended. */
  | { ok: true; op: "revoke_subject"; token_ids: string[] }
  | { ok: true; op: "use_enrolment"; subject: string }
  | { ok: true; op: "use_link"; token: Token }
  /** `ends_at`: when the token that was replaced is refused. */
  | { ok: true; op: "rotate_token"; ends_at: string }
  | { ok: false; conflict: "exists" | "not_found" | "used" | "revoked" | "expired" };

export interface TokenReads {
  /** By hash; revoked and expired ones too, so that the caller can say so. */
  token(hash: string): Promise<Token | null>;
  /** The whole hash that begins so, of a token of any kind; revoked and expired ones too. */
  token_hash(beginning: string): Promise<string | null>;
  /** Newest first. */
  tokens(page: { before?: string; limit: number }): Promise<Token[]>;
}

/** The id of a link or a browser's token names the token that it derives from: what ends that one finds it by its id. */
export function derivedTokenId(token_id: string, id: string): string {
  return `${rootTokenId(token_id)}.${id}`;
}

export function rootTokenId(token_id: string): string {
  return token_id.split(".", 1)[0]!;
}

/** Why a token is refused at this time; null while it is good. Both times are in the one form of `toISOString`. */
export function tokenRejection(
  token: Pick<Token, "expires_at" | "revoked_at">,
  at: string,
): "revoked" | "expired" | null {
  if (token.revoked_at !== null && token.revoked_at <= at) return "revoked";
  return token.expires_at !== null && token.expires_at <= at ? "expired" : null;
}
