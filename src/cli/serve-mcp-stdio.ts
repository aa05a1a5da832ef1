import type { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/**
 * Connects an MCP server to stdin and stdout. This must stay a separate bundle. In a shared bundle, the MCP SDK would use
 * that bundle's copy of zod before it is initialized.
 */
export async function serveMcpStdio(server: Server): Promise<{ close(): Promise<void>; ended: Promise<void> }> {
  const ended = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is not an EventTarget
    server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport());
  process.stdin.once("end", () => void server.close());
  return { close: () => server.close(), ended };
}
