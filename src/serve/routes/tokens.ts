import type { Token } from "../../model/token.ts";
import { toCursor } from "../../show/cursor.ts";
import { madeTokenSchema, newTokenSchema, pageOf, pageQuerySchema, tokenSchema } from "../../wire/schemas.ts";
import { pageFrom } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { json, noContent, route } from "../route.ts";
import { admins, subjectOf } from "../rule.ts";
import { hashToken, newTokenText } from "../token-text.ts";

export const tokenRoutes = [
  route({
    method: "get",
    path: "/tokens",
    rule: { roles: admins },
    summary: "List tokens, newest first; never the tokens themselves",
    query: pageQuerySchema,
    answers: { 200: { description: "A page of tokens", schema: pageOf(tokenSchema) } },
    async handle({ deps, query: { limit, cursor } }) {
      const items = await deps.store.read.tokens(pageFrom("tokens", limit, cursor));
      const last = items.at(-1);
      return json({ items, next_cursor: last && items.length === limit ? toCursor("tokens", last.token_id) : null });
    },
  }),
  route({
    method: "post",
    path: "/tokens",
    rule: { roles: admins },
    summary: "Make a token",
    body: newTokenSchema,
    answers: { 201: { description: "The token, which is shown only here", schema: madeTokenSchema } },
    async handle({ deps, principal, body }) {
      if (body.enrolment && body.role !== "runner") {
        throw new Refusal(400, "DROVER-API-006", "Only a runner enrols.", {
          faults: [{ path: "body.role", message: "must be runner where enrolment is true" }],
        });
      }
      const text = newTokenText(body.enrolment ? "drve_" : "drv_");
      const token: Token = {
        token_id: deps.newId(),
        kind: body.enrolment ? "enrolment" : "access",
        role: body.role,
        subject: body.subject,
        label: body.label ?? null,
        created_by: subjectOf(principal),
        created_at: deps.now().toISOString(),
        expires_at: body.expires_at === undefined ? null : new Date(body.expires_at).toISOString(),
        revoked_at: null,
        used_at: null,
      };
      const [made] = await deps.store.apply([{ op: "put_token", token, hash: hashToken(text) }]);
      if (!made.ok) throw new Error(`a new token was ${made.conflict}`);
      return json({ ...token, token: text }, 201);
    },
  }),
  route({
    method: "delete",
    path: "/tokens/{token_id}",
    rule: { roles: admins },
    summary: "Revoke a token, from this moment",
    answers: { 204: { description: "Revoked" } },
    async handle({ deps, params: { token_id = "" } }) {
      const [revoked] = await deps.store.apply([{ op: "revoke_token", token_id, at: deps.now().toISOString() }]);
      if (!revoked.ok) throw notFound("token", "path.token_id");
      return noContent();
    },
  }),
];
