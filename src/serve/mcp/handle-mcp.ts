import { createMcpHandler } from "@modelcontextprotocol/server";
import { createDroverMcpServer, type McpServerOptions } from "./server.ts";

/**
 * One message over streamable HTTP, answered by a server of its own. Nothing is kept between messages, so a client that
 * goes away leaves nothing behind, and any coordinator can answer the next message.
 */
export async function handleMcp(
  message: unknown,
  headers: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
  options: McpServerOptions,
): Promise<Response> {
  const handler = createMcpHandler(() => createDroverMcpServer(options), {
    // A stream carries keepalives: a client would give up on a body that takes minutes to begin.
    responseMode: "sse",
    // No list here changes by notification, so there is nothing to subscribe to.
    maxSubscriptions: 0,
  });
  const sent = new Headers({ "content-type": "application/json" });
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) sent.set(name, value);
  const request = new Request("http://drover/mcp", {
    method: "POST",
    headers: sent,
    body: JSON.stringify(message),
    signal,
  });
  const response = await handler.fetch(request, { parsedBody: message });
  signal.throwIfAborted();
  return response;
}
