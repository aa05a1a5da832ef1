import { getRootTokenId, type Token, tokenRoles } from "../../model/token.ts";
import { listTokens } from "../../show/pages.ts";
import type { ApiDeps } from "../deps.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { created } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { admins, type Principal, canSee, getSubject, submitters, getTokenOwner } from "../rule.ts";
import { hashToken, newTokenText } from "../token-text.ts";

const route = createRouteBuilder<ApiDeps>();

export const tokenRoutes = [
  route("GET /tokens", {
    rule: { roles: submitters },
    async handle({ deps, principal, query: { limit, cursor } }) {
      const page = parsePage("tokens", limit, cursor);
      return listTokens(
        deps.store.read,
        page,
        (token) => token.kind !== "link" && canSee(principal, getTokenOwner(token)),
      );
    },
  }),
  route("POST /tokens", {
    rule: { roles: admins },
    async handle({ deps, principal, body }) {
      if (body.enrolment && body.role !== "runner")
        throw invalidRequest("Only a runner can enroll.", "body.role", "must be runner if enrolment is true");
      if (body.subject === "*" && body.role !== "viewer")
        throw invalidRequest(
          "The subject * is only for viewers.",
          "body.subject",
          "must be a name unless the role is viewer",
        );
      const text = newTokenText(body.enrolment ? "drve_" : "drv_");
      const now = deps.now();
      const token: Token = {
        token_id: deps.newId(),
        kind: body.enrolment ? "enrolment" : "access",
        role: body.role,
        subject: body.subject,
        label: body.label === undefined ? null : deps.triggers.vault.redact(body.label),
        created_by: getSubject(principal),
        created_at: now.toISOString(),
        expires_at: body.expires_at === undefined ? null : checkExpiry(body.expires_at, now),
        revoked_at: null,
        used_at: null,
      };
      const [stored] = await deps.store.apply([{ op: "put_token", token, hash: hashToken(text) }]);
      if (!stored.ok) throw new Error(`a new token was ${stored.conflict}`);
      return created({ ...token, token: text });
    },
  }),
  route("POST /tokens/{token_id}/rotate", {
    rule: { roles: submitters, object: "token" },
    async handle({ deps, principal, object: old, body }) {
      // Otherwise a stolen cookie could be turned into a token that outlives it.
      if (principal.kind === "token" && getRootTokenId(principal.token_id) !== principal.token_id)
        throw new Refusal(403, "DROVER-API-011", "A browser session cannot rotate tokens.", {
          next: "Run `drover tokens rotate` on the machine that has the token.",
        });
      if (old.kind === "enrolment")
        throw cannotRotate(
          "An enrolment token can be used only once, so it cannot be rotated.",
          "drover tokens enrol SUBJECT",
        );
      if (old.kind !== "access")
        throw cannotRotate("A browser session cannot be rotated; sign in again instead.", "drover ui");
      const text = newTokenText("drv_");
      const now = deps.now();
      const at = now.toISOString();
      const token: Token = {
        ...old,
        token_id: deps.newId(),
        created_by: getSubject(principal),
        created_at: at,
        expires_at: computeNewExpiry(old, principal, now),
        revoked_at: null,
      };
      const ends_at = new Date(now.getTime() + body.overlap_seconds * 1000).toISOString();
      const [rotated] = await deps.store.apply([
        { op: "rotate_token", token_id: old.token_id, at, ends_at, token, token_hash: hashToken(text) },
      ]);
      if (!rotated.ok)
        throw cannotRotate(
          "This token was revoked, replaced or has expired in the meantime.",
          "drover tokens create SUBJECT",
        );
      await deps.recheckTokens();
      const asked_with = principal.kind === "token" && principal.token_id === old.token_id;
      const replaces = { token_id: old.token_id, ends_at: rotated.ends_at, asked_with };
      return created({ ...token, token: text, replaces });
    },
  }),
  route("POST /tokens/revoke", {
    rule: { roles: submitters },
    async handle({ deps, principal, body: { subject } }) {
      // Done in one write, because a token could be rotated at the same moment, even at another coordinator.
      const roles = tokenRoles.filter((role) => canSee(principal, getTokenOwner({ role, subject })));
      const at = deps.now().toISOString();
      const [revoked] = await deps.store.apply([{ op: "revoke_subject", subject, roles, at }]);
      if (!revoked.ok) throw new Error(`the tokens of a subject were ${revoked.conflict}`);
      await deps.recheckTokens();
      return { revoked: revoked.token_ids };
    },
  }),
  route("DELETE /tokens/{token_id}", {
    rule: { roles: submitters, object: "token" },
    async handle({ deps, object: { token_id } }) {
      const [revoked] = await deps.store.apply([{ op: "revoke_token", token_id, at: deps.now().toISOString() }]);
      if (!revoked.ok) throw notFound("token", "path.token_id");
      await deps.recheckTokens();
      return undefined;
    },
  }),
];

/**
 * A token rotated by an admin gets the old one's lifetime again. Other callers keep the old expiry: otherwise a stolen token
 * could be extended forever.
 */
function computeNewExpiry(old: Token, principal: Principal, now: Date): string | null {
  if (old.expires_at === null) return null;
  if (principal.kind !== "token" || principal.role !== "admin") return old.expires_at;
  const lifetime = Date.parse(old.expires_at) - Date.parse(old.created_at);
  return new Date(now.getTime() + lifetime).toISOString();
}

/** Times are compared as text, so years must keep four digits even after some rotations. */
function checkExpiry(expires_at: string, now: Date): string {
  const end = new Date(expires_at);
  const remainingMs = end.getTime() - now.getTime();
  if (remainingMs <= 0) throw invalidRequest("The expiry is in the past.", "body.expires_at", "must be in the future");
  if (remainingMs > maxLifetimeMs)
    throw invalidRequest("The expiry is too far in the future.", "body.expires_at", "at most 100 years from now");
  return end.toISOString();
}

const maxLifetimeMs = 36_525 * 86_400_000;

function invalidRequest(detail: string, path: string, message: string): Refusal {
  return new Refusal(400, "DROVER-API-006", detail, { faults: [{ path, message }] });
}

function cannotRotate(detail: string, command: string): Refusal {
  return new Refusal(409, "DROVER-API-030", detail, {
    faults: [{ path: "path.token_id", message: "cannot be rotated" }],
    next: `Get a new one: ${command}`,
  });
}
