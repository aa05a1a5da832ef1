import type { McpStatus } from "../../../llm/claude-code/sdk.ts";

/** Returns the servers that cannot be used, with the SDK's error. */
export function failedServers(
  wanted: readonly string[],
  known: readonly McpStatus[],
): { server: string; message: string }[] {
  return wanted.flatMap((server) => {
    const found = known.find(({ name }) => name === server);
    if (found?.status === "connected") return [];
    return [
      { server, message: found?.error ?? (found ? `its status is ${found.status}` : "Claude Code did not start it") },
    ];
  });
}

/** Returns the servers' tools under the names that the model uses. */
export function serverTools(known: readonly McpStatus[]): { name: string; reads: boolean }[] {
  return known.flatMap(({ name, tools = [] }) =>
    tools.map((tool) => ({ name: `mcp__${name}__${tool.name}`, reads: tool.annotations?.readOnly === true })),
  );
}
