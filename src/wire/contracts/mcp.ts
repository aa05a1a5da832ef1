import * as z from "zod";
import type { Contract } from "../contract.ts";

export const mcpContracts = {
  "POST /mcp": {
    id: "sendMcpMessage",
    summary: "Send a Model Context Protocol message (streamable HTTP); agents are available as tools",
    headers: z.object({
      accept: z.string().optional(),
      "mcp-protocol-version": z.string().optional(),
      "mcp-method": z.string().optional(),
      "mcp-name": z.string().optional(),
    }),
    body: z.looseObject({ jsonrpc: z.literal("2.0") }).describe("A JSON-RPC request, response or notification"),
    responses: {
      200: {
        description: "A stream of JSON-RPC messages that ends with the response",
        media: "text/event-stream",
        schema: z.string(),
      },
      202: { description: "Notification accepted" },
      429: { description: "Too many open calls with this token" },
    },
  },
} as const satisfies Record<string, Contract>;
