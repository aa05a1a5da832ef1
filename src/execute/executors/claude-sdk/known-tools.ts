import type { McpStatus } from "../../../llm/claude-code/sdk.ts";
import type { Agent } from "../../../model/agent.ts";
import { matchesAny } from "../loop/permissions.ts";
import { ownTools } from "./tools.ts";

/** Servers that cannot be used, with what the SDK knows about why. */
export function failedServers(
  wanted: readonly string[],
  known: readonly McpStatus[],
): { server: string; message: string }[] {
  return wanted.flatMap((server) => {
    const found = known.find(({ name }) => name === server);
    if (found?.status === "connected") return [];
    return [{ server, message: found?.error ?? (found ? `it is ${found.status}` : "Claude Code did not start it") }];
  });
}

/** The tools of the servers, as the model calls them. */
export function serverTools(known: readonly McpStatus[]): { name: string; reads: boolean }[] {
  return known.flatMap(({ name, tools = [] }) =>
    tools.map((tool) => ({ name: `mcp__${name}__${tool.name}`, reads: tool.annotations?.readOnly === true })),
  );
}

/**
 * Wildcards and names of MCP tools in an agent's permissions that match nothing: misspelt, or of a server that is not
 * there. `mcp__server` stands for all its tools.
 */
export function unmatchedPatterns(permissions: Agent["permissions"], known: readonly string[]): string[] {
  const all = [...ownTools, ...known];
  return [...(permissions?.allowed_tools ?? []), ...(permissions?.denied_tools ?? [])]
    .map((pattern) => pattern.replace(/\(.*$/s, ""))
    .filter((pattern) => pattern.includes("*") || pattern.startsWith("mcp__"))
    .filter((pattern) => !all.some((name) => matchesAny(name, [pattern, `${pattern}__*`])));
}
