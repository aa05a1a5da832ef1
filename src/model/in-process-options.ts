/** What somebody who runs an agent in this process brings along, and no record can hold. */
export interface InProcessOptions {
  /** MCP servers that live in this process, by their name in the agent's `mcp_servers`, where they are `{type: "sdk"}`. */
  mcpServers: Readonly<Record<string, unknown>>;
  /** Gets each message of the Agent SDK as it arrives; the next one is read when it has resolved. Never rejects. */
  onMessage?: (message: unknown) => Promise<void>;
}
