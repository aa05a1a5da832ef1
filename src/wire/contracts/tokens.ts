import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const tokenContracts = {
  "GET /tokens": {
    id: "listTokens",
    summary: "List tokens without their secrets, newest first",
    query: schemas.pageQuerySchema,
    responses: ok(
      "A page of the caller's own tokens; for an admin, of all tokens",
      schemas.createPageSchema(schemas.tokenSchema),
    ),
  },
  "POST /tokens": {
    id: "createToken",
    summary: "Create a token",
    body: schemas.newTokenSchema,
    responses: { 201: { description: "The token; its secret is shown only once", schema: schemas.createdTokenSchema } },
  },
  "POST /tokens/{token_id}/rotate": {
    id: "rotateToken",
    summary:
      "Replace a token; use `self` as the id for the token of this request. The old one stays valid for overlap_seconds",
    body: schemas.rotateTokenSchema.prefault({}),
    responses: {
      201: { description: "The new token; its secret is shown only once", schema: schemas.rotatedTokenSchema },
      409: { description: "The token has expired, was revoked, or is an enrolment token or a browser's session" },
    },
  },
  "POST /tokens/revoke": {
    id: "revokeTokens",
    summary: "Revoke every token of a subject; a user can only revoke their own",
    body: schemas.revokeTokensSchema,
    responses: ok("The ids of the revoked tokens", schemas.revokedTokensSchema),
  },
  "DELETE /tokens/{token_id}": {
    id: "revokeToken",
    summary: "Revoke a token immediately and end its open requests; use `self` as the id for the token of this request",
    responses: { 204: { description: "Revoked" } },
  },
} as const satisfies Record<string, Contract>;
