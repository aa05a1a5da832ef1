import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { HttpBindings } from "@hono/node-server";
import { createMcpHandler, type McpServerFactory } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { createGuard } from "../serve/guard.ts";
import { listen } from "../serve/listen.ts";
import { Refusal } from "../serve/refusal.ts";
import { renderRefusal } from "../serve/render.ts";

const maxBodyBytes = 16 * 1024 * 1024;

/** Serves MCP over streamable HTTP at /mcp on loopback. Requests need the returned token. */
export async function serveMcp(factory: McpServerFactory, port: number) {
  const token = randomBytes(24).toString("base64url");
  const handler = createMcpHandler(factory, { maxRequestBodySize: maxBodyBytes });
  const guard = createGuard([]);
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.all("/mcp", async (c) => {
    const refusal = guard(c.req.method, c.env.incoming.headers);
    if (refusal) return renderRefusal(refusal);
    if (!isSameToken(c.req.header("authorization"), token)) return renderRefusal(missingToken());
    return handler.fetch(c.req.raw);
  });
  const { url, close } = await listen(app, { host: "127.0.0.1", port, authEnabled: true });
  return {
    url: `${url}/mcp`,
    token,
    async close(): Promise<void> {
      await handler.close();
      await close(2000);
    },
  };
}

function isSameToken(authorization: string | undefined, token: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(authorization ?? ""), hash(`Bearer ${token}`));
}

function missingToken(): Refusal {
  return new Refusal(401, "DROVER-API-009", "This MCP server requires the token that it printed at startup.", {
    next: "Send it as Authorization: Bearer TOKEN.",
  });
}
