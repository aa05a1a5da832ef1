import * as z from "zod";
import { mcpServerSchema } from "../../../tools/mcp-server-schema.ts";

export interface ServerFault {
  server: string;
  message: string;
}

/**
 * An agent's MCP servers as the SDK wants them. Those of `inProcess` live in this process, and the agent only names
 * them. A server that is written wrongly is left out, and named.
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
        message: "it lives in the process of the program that defined it, which does not run it now",
      });
    else if (!checked.success)
      faults.push({ server, message: `its configuration is wrong: ${z.prettifyError(checked.error)}` });
    else if ("url" in checked.data)
      servers[server] = { type: "http", url: checked.data.url, headers: checked.data.headers };
    else servers[server] = { ...checked.data, type: "stdio" };
  }
  return { servers, faults };
}
