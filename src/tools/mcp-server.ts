import { Server } from "@modelcontextprotocol/server";
import type { Tool, ToolContext } from "../model/tool.ts";

/**
 * Serves tools over MCP. Uses the SDK's low-level server, which passes on JSON Schemas unchanged. Dots in names become
 * underscores, because model services refuse them.
 */
export function createMcpServer(tools: readonly Tool[], version: string, start: ToolContext["start"]): Server {
  const server = new Server({ name: "drover-file-tools", version }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: tools.map(({ name, description, input_schema, effect }) => ({
      name: toWireName(name),
      description,
      inputSchema: { ...input_schema, type: "object" as const },
      annotations: {
        readOnlyHint: effect === "read",
        destructiveHint: effect !== "read",
        openWorldHint: effect === "network",
      },
    })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = tools.find(({ name }) => name === params.name || toWireName(name) === params.name);
    const result = tool
      ? await tool.run(params.arguments ?? {}, { signal: mcpReq.signal, start })
      : { ok: false, error: { code: "unknown_tool", message: `Unknown tool: ${params.name}.` } };
    return { content: [{ type: "text" as const, text: JSON.stringify(result) }], isError: !result.ok };
  });
  return server;
}

function toWireName(name: string): string {
  return name.replaceAll(".", "_");
}
