import { renderDocsPage } from "../docs-page.ts";
import type { SystemDeps } from "../deps.ts";
import { Refusal } from "../refusal.ts";
import { BackupReply, Reply, TextReply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { admins } from "../rule.ts";

const route = createRouteBuilder<SystemDeps>();

export const systemRoutes = [
  route("GET /health", {
    rule: { open: true },
    async handle({ deps }) {
      const error = await deps.findRecordError();
      if (error !== null) throw error;
      return { status: "ok" as const, version: deps.version, protocol: 1 as const };
    },
  }),
  route("POST /proof", {
    rule: { open: true },
    bodyLimit: 1024,
    recordTimeoutMs: 4000,
    async handle({ deps, body, localOrigin }) {
      const proof = await deps.prove(body, localOrigin);
      if (proof === null) throw refuseForeignOrigin(body.origin);
      return { proof };
    },
  }),
  route("GET /metrics", {
    rule: { roles: ["admin", "viewer"], allOwners: true },
    handle: async ({ deps }) =>
      new TextReply(await deps.metrics.render(), { "content-type": "text/plain; version=0.0.4; charset=utf-8" }),
  }),
  route("GET /audit", { rule: { roles: admins }, handle: ({ deps }) => deps.audit.state() }),
  route("POST /audit/verify", {
    rule: { roles: admins },
    sendsKeepalives: true,
    handle: ({ deps, signal }) => deps.audit.verify(signal),
  }),
  route("POST /backup", {
    rule: { roles: admins },
    async handle({ deps, signal }) {
      const backup = deps.backup(signal);
      if (backup === null) throw backupInProgress();
      return new BackupReply(backup);
    },
  }),
  route("GET /openapi.json", {
    rule: { open: true },
    handle: async ({ deps }) => ({ ...deps.getOpenApiDocument() }),
  }),
  route("GET /docs", {
    rule: { open: true },
    async handle({ deps }) {
      const { html, contentSecurityPolicy } = renderDocsPage(deps.getOpenApiDocument());
      return new TextReply(html, {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": contentSecurityPolicy,
      });
    },
  }),
  route("GET /", {
    rule: { open: true },
    handle: async () => new Reply(302, undefined, { location: "/ui/" }),
  }),
];

function refuseForeignOrigin(origin: string): Refusal {
  return new Refusal(403, "DROVER-API-012", `${origin} is not an address of this coordinator.`, {
    faults: [{ path: "body.origin", message: "neither the address of this connection nor one of public_urls" }],
    next: "If the coordinator is behind a proxy or a forwarded port, add the address to public_urls.",
  });
}

function backupInProgress(): Refusal {
  return new Refusal(409, "DROVER-API-030", "This coordinator is already making or sending a backup.", {
    next: "Try again when it has finished.",
  });
}
