import * as z from "zod";

/** As agents name them: a program that speaks MCP on stdin and stdout, or an address. */
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
