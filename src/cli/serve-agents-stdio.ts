import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createDroverMcpServer, type McpServerOptions } from "../serve/mcp/server.ts";

/** Agents as tools on stdin and stdout. A bundle of its own, because only this command needs the SDK. */
export function serveAgentsStdio(options: McpServerOptions): { close(): Promise<void>; ended: Promise<void> } {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const transport = new (class extends StdioServerTransport {
    // also where a message is too large, or nobody reads stdout any more
    override async close(): Promise<void> {
      await super.close();
      end();
    }
  })();
  const { close } = serveStdio(() => createDroverMcpServer(options), { transport, maxSubscriptions: 0 });
  return { close, ended };
}
