import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const tokenContracts = {
  "GET /tokens": {
    id: "listTokens",
    summary: "List tokens, newest first; never their text",
    query: schemas.pageQuerySchema,
    responses: ok("A page of the caller's own; for an admin of all", schemas.pageOf(schemas.tokenSchema)),
  },
  "POST /tokens": {
    id: "createToken",
    summary: "Create a token",
    body: schemas.newTokenSchema,
    responses: { 201: { description: "The token, whose text is shown only here", schema: schemas.createdTokenSchema } },
  },
  "POST /tokens/{token_id}/rotate": {
    id: "rotateToken",
    summary: "Replace a token (self: the one of this request); the old one stays valid for a while",
    body: schemas.rotateTokenSchema.prefault({}),
    responses: {
      201: { description: "The new token, whose text is shown only here", schema: schemas.rotatedTokenSchema },
      409: { description: "The token has ended or is an enrolment token" },
    },
  },
  "POST /tokens/revoke": {
    id: "revokeTokens",
    summary: "Revoke every token of a subject; a user can revoke only their own",
    body: schemas.revokeTokensSchema,
    responses: ok("The ids of the tokens that were revoked", schemas.revokedTokensSchema),
  },
  "DELETE /tokens/{token_id}": {
    id: "revokeToken",
    summary: "Revoke a token (self: the one of this request) at once, and end its open requests",
    responses: { 204: { description: "Revoked" } },
  },
} as const satisfies Record<string, Contract>;
