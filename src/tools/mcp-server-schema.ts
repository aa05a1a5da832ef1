import * as z from "zod";

/** An MCP server in an agent: a program that speaks MCP on stdin and stdout, or a URL. */
export const mcpServerSchema = z.union([
  z.strictObject({
    type: z.literal("stdio").optional(),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    env: z.record(z.string(), z.string()).default({}),
  }),
  z.strictObject({
    type: z.enum(["http", "streamable-http"]).optional(),
    url: z.url({ protocol: /^https?$/ }),
    headers: z.record(z.string(), z.string()).default({}),
  }),
]);
