import * as z from "zod";
import { type Contract, ok } from "../contract.ts";
import { healthSchema, meSchema, proofRequestSchema, proofSchema, signInLinkSchema, signInSchema } from "../schemas.ts";

export const systemContracts = {
  "GET /health": {
    id: "getHealth",
    summary: "Check that the coordinator is serving and can use its record",
    responses: {
      200: { description: "Healthy: serving and able to use its record", schema: healthSchema },
      503: { description: "Serving, but the record is unreachable or does not respond" },
    },
  },
  "POST /proof": {
    id: "proveCoordinator",
    summary: "Ask the coordinator to prove that it knows a token before sending it that token",
    body: proofRequestSchema,
    responses: {
      200: {
        description: "HMAC-SHA256 over the nonce and the origin, keyed with the token's hash",
        schema: proofSchema,
      },
      403: { description: "The origin is not an address of this coordinator" },
    },
  },
  "GET /me": {
    id: "getMe",
    summary: "Get the caller's identity",
    responses: ok("The caller's subject and role", meSchema),
  },
  "POST /sign-in/links": {
    id: "createSignInLink",
    summary: "Create a single-use code that signs in a browser within ten minutes: /ui/#code=CODE",
    responses: { 201: { description: "The code; it is shown only once", schema: signInLinkSchema } },
  },
  "POST /sign-in": {
    id: "signIn",
    summary: "Exchange a sign-in link's single-use code for a session cookie",
    headers: z.object({ origin: z.string().optional() }),
    body: signInSchema,
    responses: {
      204: { description: "Signed in; Set-Cookie contains the session" },
      409: { description: "The code was already used, was revoked or has expired" },
    },
  },
  "DELETE /sign-in": {
    id: "signOut",
    summary: "Sign out: end the session of the request's cookie",
    responses: { 204: { description: "Signed out" } },
  },
  "GET /metrics": {
    id: "getMetrics",
    summary: "Get metrics for Prometheus",
    responses: { 200: { description: "Prometheus text", media: "text/plain; version=0.0.4", schema: z.string() } },
  },
  "POST /backup": {
    id: "backUp",
    summary: "Download a consistent copy of the record while the coordinator keeps running",
    responses: {
      200: { description: "An SQLite file", media: "application/vnd.sqlite3", schema: z.string() },
      409: { description: "Another backup is being made or downloaded" },
    },
  },
  "GET /openapi.json": {
    id: "getOpenApi",
    summary: "Get this API as an OpenAPI 3.1 document",
    responses: ok("The document", z.record(z.string(), z.unknown())),
  },
  "GET /docs": {
    id: "getDocs",
    summary: "Get this API's reference as an HTML page",
    responses: { 200: { description: "The page", media: "text/html", schema: z.string() } },
  },
  "GET /": { id: "getRoot", summary: "Redirect to the dashboard", responses: { 302: { description: "To /ui/" } } },
} as const satisfies Record<string, Contract>;
