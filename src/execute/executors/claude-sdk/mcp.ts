import * as z from "zod";
import { mcpServerSchema } from "../../../tools/mcp-server-schema.ts";

export interface ServerFault {
  server: string;
  message: string;
}

/**
 * Converts an agent's MCP servers to the SDK's format. The servers in `inProcess` run in this process; the agent only
 * refers to them by name. Misconfigured servers are left out and reported.
 */
export function toMcpServers(
  given: Record<string, unknown> = {},
  inProcess: Readonly<Record<string, unknown>> = {},
): { servers: Record<string, unknown>; faults: ServerFault[] } {
  const servers: Record<string, unknown> = { ...inProcess };
  const faults: ServerFault[] = [];
  for (const [server, config] of Object.entries(given)) {
    if (Object.hasOwn(inProcess, server)) continue;
    const checked = mcpServerSchema.safeParse(config);
    if (typeof config === "object" && config !== null && "type" in config && config.type === "sdk")
      faults.push({
        server,
        message:
          "it belongs to the process of the program that defined it, and that program does not run this agent now",
      });
    else if (!checked.success)
      faults.push({ server, message: `its configuration is invalid: ${z.prettifyError(checked.error)}` });
    else if ("url" in checked.data)
      servers[server] = { type: "http", url: checked.data.url, headers: checked.data.headers };
    else servers[server] = { ...checked.data, type: "stdio" };
  }
  return { servers, faults };
}
