import type { SystemDeps } from "../deps.ts";
import { WebReply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people } from "../rule.ts";

const route = createRouteBuilder<SystemDeps>();

export const mcpRoutes = [
  route("POST /mcp", {
    // Every tool calls another route, which applies its own rule.
    rule: { roles: people, attempt: true },
    bodyLimit: 5 * 1024 * 1024,
    handle: async ({ deps, principal, body, headers, signal }) =>
      new WebReply(await deps.handleMcp(principal, body, headers, signal)),
  }),
];
