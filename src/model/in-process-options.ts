/** Values that a caller in this process passes to an agent directly, because the record cannot store them. */
export interface InProcessOptions {
  /** MCP servers inside this process, by their name in the agent's `mcp_servers`, where their type is `sdk`. */
  mcpServers: Readonly<Record<string, unknown>>;
  /** Receives each message of the Agent SDK. The next message is read after it resolves. Must not reject. */
  onMessage?: (message: unknown) => Promise<void>;
}
