/** The roles that a token can grant over HTTP. Only the hash of a token is stored; the token itself is shown once. */
export const tokenRoles = ["admin", "user", "viewer", "runner"] as const;
export type TokenRole = (typeof tokenRoles)[number];

/**
 * An `access` token is a bearer token. A runner exchanges an `enrolment` token, once, for an access token with role
 * `runner` and the same subject. A browser exchanges the `link` token of a sign-in link, once, for a `browser` token,
 * which it sends as a cookie. Link and browser tokens derive from an access token and end with it.
 */
export const tokenKinds = ["access", "enrolment", "link", "browser"] as const;

export interface Token {
  token_id: string;
  kind: (typeof tokenKinds)[number];
  role: TokenRole;
  /** The identity behind the requests. It becomes a run's `created_by` and a runner's `owner`. */
  subject: string;
  /** A free-form note, such as "laptop". */
  label: string | null;
  created_by: string;
  created_at: string;
  /** ISO time from which the token is rejected. null: it never expires. */
  expires_at: string | null;
  /** ISO time from which the token is rejected. It is in the future for a rotated token that stays valid for a while. */
  revoked_at: string | null;
  /** When an enrolment token was exchanged. */
  used_at: string | null;
}

export type TokenOp = PutToken | RevokeToken | RevokeSubject | UseEnrolment | UseLink | RotateToken;

/** Stores a token. `hash` is the lower-case hexadecimal SHA-256 of the token. A known hash or token_id is `exists`. */
export interface PutToken {
  op: "put_token";
  token: Token;
  hash: string;
}

/** Revokes a token and all tokens derived from it. If it is revoked twice, the earlier time counts. */
export interface RevokeToken {
  op: "revoke_token";
  token_id: string;
  at: string;
}

/**
 * Revokes all tokens of a subject that are still valid at `at`, or at the store's time if that is earlier. No token
 * escapes: one that a concurrent rotation or enrolment creates is either revoked too or never created.
 */
export interface RevokeSubject {
  op: "revoke_subject";
  subject: string;
  /** Tokens with other roles stay valid. */
  roles: readonly TokenRole[];
  at: string;
}

/**
 * Atomically marks the enrolment token as used and stores the runner's token. Rejected if the enrolment token is unknown
 * or of another kind (`not_found`), already exchanged (`used`), revoked, or expired at `at`.
 */
export interface UseEnrolment {
  op: "use_enrolment";
  hash: string;
  at: string;
  /** Role and subject are ignored here and taken from the enrolment token. */
  token: Token;
  token_hash: string;
}

/**
 * Atomically marks a link as used and stores the browser's token. Rejected like an enrolment, and also if the token that
 * the link derives from is no longer valid.
 */
export interface UseLink {
  op: "use_link";
  hash: string;
  at: string;
  /** The second part of the new token's id; see `createDerivedTokenId`. */
  id: string;
  /** Role and subject are taken from the link. It expires no later than the token it derives from. */
  token: Omit<Token, "token_id" | "role" | "subject">;
  token_hash: string;
}

/**
 * Atomically stores a new token and revokes the old one as of `ends_at`, or its existing revocation time if that is
 * earlier. Rejected if the old token is unknown or an enrolment token (`not_found`), or at `at` is already revoked
 * (`revoked`) or expired (`expired`).
 */
export interface RotateToken {
  op: "rotate_token";
  token_id: string;
  at: string;
  ends_at: string;
  /** Role, subject and label are ignored here and taken from the old token. */
  token: Token;
  token_hash: string;
}

export type TokenResult =
  | { ok: true; op: "put_token" }
  | { ok: true; op: "revoke_token" }
  /** `token_ids`: the revoked tokens. */
  | { ok: true; op: "revoke_subject"; token_ids: string[] }
  | { ok: true; op: "use_enrolment"; subject: string }
  | { ok: true; op: "use_link"; token: Token }
  /** `ends_at`: from when the old token is rejected. */
  | { ok: true; op: "rotate_token"; ends_at: string }
  | { ok: false; conflict: "exists" | "not_found" | "used" | "revoked" | "expired" };

export interface TokenReads {
  /** Returns revoked and expired tokens too, so that the caller can report the reason. */
  token(hash: string): Promise<Token | null>;
  /** The full hash with this prefix, of a token of any kind, including revoked and expired ones. */
  token_hash(prefix: string): Promise<string | null>;
  /** Newest first. */
  tokens(page: { before?: string; limit: number }): Promise<Token[]>;
}

/** The id of a link or browser token contains the id of its access token, so that revoking the access token finds it. */
export function createDerivedTokenId(token_id: string, id: string): string {
  return `${getRootTokenId(token_id)}.${id}`;
}

export function getRootTokenId(token_id: string): string {
  return token_id.split(".", 1)[0]!;
}

/** Why a token is rejected at this time, or null if it is valid. All times must be in the format of `toISOString`. */
export function getTokenRejection(
  token: Pick<Token, "expires_at" | "revoked_at">,
  at: string,
): "revoked" | "expired" | null {
  if (token.revoked_at !== null && token.revoked_at <= at) return "revoked";
  return token.expires_at !== null && token.expires_at <= at ? "expired" : null;
}
