import * as z from "zod";
import { type Contract, ok } from "../contract.ts";
import { healthSchema, meSchema, proofRequestSchema, proofSchema, signInLinkSchema, signInSchema } from "../schemas.ts";

export const systemContracts = {
  "GET /health": {
    id: "getHealth",
    summary: "Check that the coordinator serves and can use its record",
    responses: {
      200: { description: "Healthy: serving and able to use its record", schema: healthSchema },
      503: { description: "Serving, but its record cannot be reached or does not answer" },
    },
  },
  "POST /proof": {
    id: "proveCoordinator",
    summary: "Have the coordinator prove that it knows a token, before the token is sent to it",
    body: proofRequestSchema,
    responses: {
      200: {
        description: "HMAC-SHA256 over the nonce and the origin, keyed with the token's hash",
        schema: proofSchema,
      },
      403: { description: "The origin is not one that this coordinator is reached by" },
    },
  },
  "GET /me": { id: "getMe", summary: "Who sends this request", responses: ok("Its role and subject", meSchema) },
  "POST /sign-in/links": {
    id: "createSignInLink",
    summary: "Create a code that signs a browser in, once, within ten minutes: /ui/#code=CODE",
    responses: { 201: { description: "The code, which is shown only here", schema: signInLinkSchema } },
  },
  "POST /sign-in": {
    id: "signIn",
    summary: "Exchange the code of a sign-in link, once, for a session cookie",
    headers: z.object({ origin: z.string().optional() }),
    body: signInSchema,
    responses: {
      204: { description: "Signed in; Set-Cookie has the session" },
      409: { description: "The code was used, revoked or has expired" },
    },
  },
  "DELETE /sign-in": {
    id: "signOut",
    summary: "End the session of the cookie that is sent",
    responses: { 204: { description: "Signed out" } },
  },
  "GET /metrics": {
    id: "getMetrics",
    summary: "Counters and gauges for Prometheus",
    responses: { 200: { description: "Prometheus text", media: "text/plain; version=0.0.4", schema: z.string() } },
  },
  "POST /backup": {
    id: "backUp",
    summary: "Download a consistent copy of the record while everything keeps running",
    responses: {
      200: { description: "An SQLite file", media: "application/vnd.sqlite3", schema: z.string() },
      409: { description: "Another backup is being made or downloaded" },
    },
  },
  "GET /openapi.json": {
    id: "getOpenApi",
    summary: "This API as an OpenAPI 3.1 document",
    responses: ok("The document", z.record(z.string(), z.unknown())),
  },
  "GET /docs": {
    id: "getDocs",
    summary: "This API as a page to read",
    responses: { 200: { description: "The page", media: "text/html", schema: z.string() } },
  },
  "GET /": { id: "getRoot", summary: "Redirects to the dashboard", responses: { 302: { description: "To /ui/" } } },
} as const satisfies Record<string, Contract>;
