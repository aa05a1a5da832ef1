import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { healthSchema, problemSchema } from "../../wire/schemas.ts";
import { docsPage } from "../docs-page.ts";
import { alreadySent, json, route } from "../route.ts";
import { admins } from "../rule.ts";

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
    answers: { 200: { description: "An SQLite file", media: "application/vnd.sqlite3", schema: z.string() } },
    async handle({ deps, outgoing }) {
      const { file, dispose } = await deps.backup();
      try {
        const { size } = await stat(file);
        outgoing.writeHead(200, {
          "content-type": "application/vnd.sqlite3",
          "content-length": size,
          "cache-control": "no-store",
        });
        await pipeline(createReadStream(file), outgoing);
      } catch (error) {
        // the head is out: a cut answer, shorter than it said, is how the other side learns of it
        if (!outgoing.destroyed) deps.onDefect(error, "post /backup");
        outgoing.destroy();
      } finally {
        await dispose();
      }
      return alreadySent();
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
