import { rootTokenId, type Token, tokenRoles } from "../../model/token.ts";
import { listTokens } from "../../show/pages.ts";
import type { ApiDeps } from "../deps.ts";
import { pageFrom } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { created } from "../reply.ts";
import { routeWith } from "../route.ts";
import { admins, type Principal, sees, subjectOf, submitters, tokenOwner } from "../rule.ts";
import { hashToken, newTokenText } from "../token-text.ts";

const route = routeWith<ApiDeps>();

export const tokenRoutes = [
  route("GET /tokens", {
    rule: { roles: submitters },
    async handle({ deps, principal, query: { limit, cursor } }) {
      const page = pageFrom("tokens", limit, cursor);
      return listTokens(deps.store.read, page, (token) => token.kind !== "link" && sees(principal, tokenOwner(token)));
    },
  }),
  route("POST /tokens", {
    rule: { roles: admins },
    async handle({ deps, principal, body }) {
      if (body.enrolment && body.role !== "runner")
        throw refused("Only a runner enrols.", "body.role", "must be runner where enrolment is true");
      if (body.subject === "*" && body.role !== "viewer")
        throw refused("Only a viewer is for everyone's.", "body.subject", "must be a name unless the role is viewer");
      const text = newTokenText(body.enrolment ? "drve_" : "drv_");
      const now = deps.now();
      const token: Token = {
        token_id: deps.newId(),
        kind: body.enrolment ? "enrolment" : "access",
        role: body.role,
        subject: body.subject,
        label: body.label ?? null,
        created_by: subjectOf(principal),
        created_at: now.toISOString(),
        expires_at: body.expires_at === undefined ? null : endAhead(body.expires_at, now),
        revoked_at: null,
        used_at: null,
      };
      const [made] = await deps.store.apply([{ op: "put_token", token, hash: hashToken(text) }]);
      if (!made.ok) throw new Error(`a new token was ${made.conflict}`);
      return created({ ...token, token: text });
    },
  }),
  route("POST /tokens/{token_id}/rotate", {
    rule: { roles: submitters, object: "token" },
    async handle({ deps, principal, object: old, body }) {
      // or a cookie that was stolen would become a token that outlasts it
      if (principal.kind === "token" && rootTokenId(principal.token_id) !== principal.token_id)
        throw new Refusal(403, "DROVER-API-011", "A browser's session cannot rotate tokens.", {
          next: "Run `drover tokens rotate` where the token is.",
        });
      if (old.kind === "enrolment")
        throw notNow("An enrolment token is used once, so there is nothing to rotate.", "drover tokens enrol SUBJECT");
      if (old.kind !== "access")
        throw notNow("A browser's session cannot be rotated: sign in again instead.", "drover ui");
      const text = newTokenText("drv_");
      const now = deps.now();
      const at = now.toISOString();
      const token: Token = {
        ...old,
        token_id: deps.newId(),
        created_by: subjectOf(principal),
        created_at: at,
        expires_at: endOfNew(old, principal, now),
        revoked_at: null,
      };
      const ends_at = new Date(now.getTime() + body.overlap_seconds * 1000).toISOString();
      const [rotated] = await deps.store.apply([
        { op: "rotate_token", token_id: old.token_id, at, ends_at, token, token_hash: hashToken(text) },
      ]);
      if (!rotated.ok) throw notNow(`This token has ended: ${rotated.conflict}.`, "drover tokens create SUBJECT");
      await deps.recheckTokens();
      const asked_with = principal.kind === "token" && principal.token_id === old.token_id;
      const replaces = { token_id: old.token_id, ends_at: rotated.ends_at, asked_with };
      return created({ ...token, token: text, replaces });
    },
  }),
  route("POST /tokens/revoke", {
    rule: { roles: submitters },
    async handle({ deps, principal, body: { subject } }) {
      // within the write itself: whoever has one of them may be rotating it, at another coordinator too
      const roles = tokenRoles.filter((role) => sees(principal, tokenOwner({ role, subject })));
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
 * As long again as the old one was made for. Only an admin can give time: who rotates their own token gets another for
 * what is left of it, or a stolen one could be kept for ever.
 */
function endOfNew(old: Token, principal: Principal, now: Date): string | null {
  if (old.expires_at === null) return null;
  if (principal.kind !== "token" || principal.role !== "admin") return old.expires_at;
  const lifetime = Date.parse(old.expires_at) - Date.parse(old.created_at);
  return new Date(now.getTime() + lifetime).toISOString();
}

/** Times are compared as text, for which their years must have four digits, after some rotations too. */
function endAhead(expires_at: string, now: Date): string {
  const end = new Date(expires_at);
  const ahead = end.getTime() - now.getTime();
  if (ahead <= 0) throw refused("This end has passed.", "body.expires_at", "must lie ahead");
  if (ahead > longestMs) throw refused("This end is too far away.", "body.expires_at", "at most 100 years ahead");
  return end.toISOString();
}

const longestMs = 36_525 * 86_400_000;

function refused(detail: string, path: string, message: string): Refusal {
  return new Refusal(400, "DROVER-API-006", detail, { faults: [{ path, message }] });
}

function notNow(detail: string, command: string): Refusal {
  return new Refusal(409, "DROVER-API-030", detail, {
    faults: [{ path: "path.token_id", message: "cannot be rotated" }],
    next: `Make another: ${command}`,
  });
}
