import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createDroverMcpServer, type McpServerOptions } from "../serve/mcp/server.ts";

/** Serves agents as MCP tools over stdin and stdout. This is a separate bundle, because only this command needs the SDK. */
export function serveAgentsStdio(options: McpServerOptions): { close(): Promise<void>; ended: Promise<void> } {
  let resolveEnded!: () => void;
  const ended = new Promise<void>((resolve) => (resolveEnded = resolve));
  const transport = new (class extends StdioServerTransport {
    // The transport also closes after an oversized message, or when stdout is closed.
    override async close(): Promise<void> {
      await super.close();
      resolveEnded();
    }
  })();
  const { close } = serveStdio(() => createDroverMcpServer(options), { transport, maxSubscriptions: 0 });
  return { close, ended };
}
