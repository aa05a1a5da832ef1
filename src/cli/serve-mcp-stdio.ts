import type { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/**
 * An MCP server on stdin and stdout. A file of its own, so that it is a bundle of its own: a package that is imported
 * lazily inside another bundle shares zod with it, and zod would be used there before it is initialized.
 */
export async function serveMcpStdio(server: Server): Promise<{ close(): Promise<void>; ended: Promise<void> }> {
  const ended = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no EventTarget
    server.onclose = resolve;
  });
  await server.connect(new StdioServerTransport());
  process.stdin.once("end", () => void server.close());
  return { close: () => server.close(), ended };
}
