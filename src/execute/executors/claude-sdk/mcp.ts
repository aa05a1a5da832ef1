import * as z from "zod";
import { mcpServerSchema } from "../../../tools/mcp-server-schema.ts";

export interface ServerFailure {
  server: string;
  message: string;
}

/**
 * Converts an agent's MCP servers to the SDK's format. The servers in `inProcess` run in this process; the agent only
 * refers to them by name. Omits misconfigured servers and returns them in `failures`.
 */
export function toMcpServers(
  configured: Record<string, unknown> = {},
  inProcess: Readonly<Record<string, unknown>> = {},
): { servers: Record<string, unknown>; failures: ServerFailure[] } {
  const servers: Record<string, unknown> = { ...inProcess };
  const failures: ServerFailure[] = [];
  for (const [server, config] of Object.entries(configured)) {
    if (Object.hasOwn(inProcess, server)) continue;
    const parsed = mcpServerSchema.safeParse(config);
    if (typeof config === "object" && config !== null && "type" in config && config.type === "sdk")
      failures.push({
        server,
        message: "it is an in-process server, available only when the program that defines it runs the agent",
      });
    else if (!parsed.success)
      failures.push({ server, message: `its configuration is invalid: ${z.prettifyError(parsed.error)}` });
    else if ("url" in parsed.data)
      servers[server] = { type: "http", url: parsed.data.url, headers: parsed.data.headers };
    else servers[server] = { ...parsed.data, type: "stdio" };
  }
  return { servers, failures };
}
