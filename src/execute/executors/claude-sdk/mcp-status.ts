import type { McpStatus } from "../../../llm/claude-code/sdk.ts";

/** Returns the servers that cannot be used, with the SDK's error. */
export function findFailedServers(
  servers: readonly string[],
  statuses: readonly McpStatus[],
): { server: string; message: string }[] {
  return servers.flatMap((server) => {
    const status = statuses.find(({ name }) => name === server);
    if (status?.status === "connected") return [];
    return [
      {
        server,
        message: status?.error ?? (status ? `its status is ${status.status}` : "Claude Code did not start it"),
      },
    ];
  });
}

/** Returns the servers' tools under the names that the model uses. */
export function listServerTools(statuses: readonly McpStatus[]): { name: string; isReadOnly: boolean }[] {
  return statuses.flatMap(({ name, tools = [] }) =>
    tools.map((tool) => ({ name: `mcp__${name}__${tool.name}`, isReadOnly: tool.annotations?.readOnly === true })),
  );
}
