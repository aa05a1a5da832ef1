import { createMcpHandler } from "@modelcontextprotocol/server";
import { createDroverMcpServer, type McpServerOptions } from "./server.ts";

/**
 * Handles one message over streamable HTTP with a new server. There is no state between messages, so any coordinator can
 * handle the next one.
 */
export async function handleMcp(
  message: unknown,
  headers: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
  options: McpServerOptions,
): Promise<Response> {
  const handler = createMcpHandler(() => createDroverMcpServer(options), {
    // A stream carries keepalives. Without them a client would time out while a run takes minutes.
    responseMode: "sse",
    // No list sends change notifications, so there is nothing to subscribe to.
    maxSubscriptions: 0,
  });
  const requestHeaders = new Headers({ "content-type": "application/json" });
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) requestHeaders.set(name, value);
  const request = new Request("http://drover/mcp", {
    method: "POST",
    headers: requestHeaders,
    body: JSON.stringify(message),
    signal,
  });
  const response = await handler.fetch(request, { parsedBody: message });
  signal.throwIfAborted();
  return response;
}
