import { z } from "zod";
import { healthSchema, problemSchema } from "../../wire/schemas.ts";
import { docsPage } from "../docs-page.ts";
import { Refusal } from "../refusal.ts";
import { json, route } from "../route.ts";
import { admins } from "../rule.ts";
import { sendBackup } from "../send-backup.ts";
import { whenClosed } from "../when-closed.ts";

const signMs = 10_000;

export const systemRoutes = [
  route({
    method: "get",
    path: "/health",
    rule: { open: true },
    summary: "Is it there, can it use its record, and which version is it",
    answers: {
      200: { description: "It is, and can", schema: healthSchema },
      503: {
        description: "It is there, and its record cannot be reached or does not answer",
        schema: problemSchema,
        media: "application/problem+json",
      },
    },
    async handle({ deps }) {
      const fault = await deps.recordFault();
      if (fault !== null) throw fault;
      return json({ status: "ok", version: deps.version, protocol: 1 });
    },
  }),
  route({
    method: "get",
    path: "/metrics",
    rule: { roles: ["admin", "viewer"], everyones: true },
    summary: "Counters and gauges for Prometheus",
    answers: { 200: { description: "Prometheus text", media: "text/plain; version=0.0.4", schema: z.string() } },
    async handle({ deps }) {
      return new Response(await deps.metrics.write(), {
        headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
      });
    },
  }),
  route({
    method: "post",
    path: "/backup",
    rule: { roles: admins },
    summary: "A consistent copy of the database, while everything goes on",
    answers: {
      200: { description: "An SQLite file", media: "application/vnd.sqlite3", schema: z.string() },
      409: {
        description: "Another one is being made or fetched here",
        media: "application/problem+json",
        schema: problemSchema,
      },
    },
    async handle({ deps, outgoing, headers, stay, standing }) {
      const gone = new AbortController();
      const making = deps.backup(gone.signal);
      if (making === null) throw another();
      const stayed = whenClosed(outgoing, () => gone.abort(hungUp()));
      try {
        return await sendBackup(making, {
          outgoing,
          headers: { "x-content-type-options": "nosniff" },
          acceptEncoding: String(headers["accept-encoding"] ?? ""),
          signMs: deps.pollSignMs ?? signMs,
          async mayHaveIt() {
            // it has the key in it: not for one whose token ended while it was made, wherever that was
            await standing.look();
            if (stay.refused) throw stay.refused;
            gone.signal.throwIfAborted();
          },
        });
      } catch (error) {
        throw isLeaving(error) ? hungUp() : error;
      } finally {
        stayed();
      }
    },
  }),
  route({
    method: "get",
    path: "/openapi.json",
    rule: { open: true },
    summary: "This API as an OpenAPI 3.1 document",
    answers: { 200: { description: "The document", schema: z.record(z.string(), z.unknown()) } },
    handle: async ({ document }) => json(document()),
  }),
  route({
    method: "get",
    path: "/docs",
    rule: { open: true },
    summary: "This API as a page to read",
    answers: { 200: { description: "The page", media: "text/html", schema: z.string() } },
    async handle({ document }) {
      const { html, contentSecurityPolicy } = docsPage(document());
      return new Response(html, {
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": contentSecurityPolicy },
      });
    },
  }),
  route({
    method: "get",
    path: "/",
    rule: { open: true },
    summary: "Leads to the page to read",
    answers: { 302: { description: "To /docs" } },
    handle: async () => new Response(null, { status: 302, headers: { location: "/docs" } }),
  }),
];

function another(): Refusal {
  return new Refusal(409, "DROVER-API-030", "Another backup is being made or fetched at this coordinator.", {
    next: "Ask again when that one is done.",
  });
}

/** What a stream says whose reader went away. */
function isLeaving(error: unknown): boolean {
  const codes = ["ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED", "ECONNRESET", "EPIPE"];
  return error instanceof Error && codes.includes(String(Reflect.get(error, "code")));
}

function hungUp(): Refusal {
  return new Refusal(400, "DROVER-API-029", "Whoever asked for the backup hung up.");
}
