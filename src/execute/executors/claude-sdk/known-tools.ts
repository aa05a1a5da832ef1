import type { McpStatus } from "../../../llm/claude-code/sdk.ts";

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
