import { writePrivate } from "../../scaffold/write-private.ts";
import { claudeConversation } from "./claude-conversation.ts";
import { openClaudeHome, getQuietVariables } from "./claude-home.ts";
import { createClaudeReader } from "./claude-messages.ts";
import { defineClient } from "./define-client.ts";
import type { Turn } from "./definition.ts";
import { permissionFlags } from "./permission-modes.ts";
import { programs } from "./programs.ts";

export const claude = defineClient({
  ...programs.claude,
  variables: ["ANTHROPIC_*", "CLAUDE_*"],
  can: { resume: true, fork: true, fork_at_turn: true },
  conversation: claudeConversation,
  async prepare(turn) {
    const files = await writeFiles(turn);
    return {
      args: toClaudeArgs(turn, files),
      env: { ...(await getConfigDirVariable(turn)), ...toClaudeEnv(turn) },
      reader: createClaudeReader(undefined, turn.invocation.agent.permissions?.denied_tools),
    };
  },
});

interface Files {
  systemPrompt?: string;
  mcpConfig?: string;
}

/** Values follow `=` so that none is parsed as an option. The prompt goes through stdin instead. */
export function toClaudeArgs({ invocation, mode, session, fork }: Turn, files: Files): string[] {
  const { agent } = invocation;
  const args = ["-p", "--output-format=stream-json", "--verbose", "--include-partial-messages"];
  args.push(...permissionFlags.claude[mode]);
  // Without `project` and `local`, Claude ignores the repository's settings, hooks, CLAUDE.md, skills and agents.
  if (!agent.trust_project_settings) args.push("--setting-sources=user", "--strict-mcp-config");
  for (const tool of agent.permissions?.allowed_tools ?? []) args.push(`--allowedTools=${tool}`);
  for (const tool of agent.permissions?.denied_tools ?? []) args.push(`--disallowedTools=${tool}`);
  if (agent.model !== undefined) args.push(`--model=${agent.model}`);
  if (agent.max_turns !== undefined) args.push(`--max-turns=${agent.max_turns}`);
  if (agent.budget?.cost_usd !== undefined) args.push(`--max-budget-usd=${agent.budget.cost_usd}`);
  if (files.systemPrompt !== undefined) args.push(`--append-system-prompt-file=${files.systemPrompt}`);
  if (files.mcpConfig !== undefined) args.push(`--mcp-config=${files.mcpConfig}`);
  if (session !== null) args.push(`--resume=${session}`);
  if (fork) args.push("--fork-session");
  return args;
}

function toClaudeEnv({ env, mode, isRoot }: Turn): Record<string, string> {
  return {
    ...getQuietVariables(env),
    // As root, Claude refuses this mode without IS_SANDBOX. Drover has checked that the operator allows it.
    ...(mode === "bypassPermissions" && isRoot ? { IS_SANDBOX: "1" } : {}),
  };
}

/** Overrides the operator's CLAUDE_CONFIG_DIR if the session has its own HOME. */
async function getConfigDirVariable(turn: Turn): Promise<Record<string, string>> {
  const configDir = await openClaudeHome(turn);
  return configDir !== null && turn.env["CLAUDE_CONFIG_DIR"] ? { CLAUDE_CONFIG_DIR: configDir } : {};
}

/** Passes long or secret values in private files, because every user can read a command line. */
async function writeFiles({ tmpDir, systemPrompt, invocation }: Turn): Promise<Files> {
  const files: Files = {};
  const write = (name: string, text: string): Promise<string> => writePrivate(tmpDir, name, text);
  if (systemPrompt !== null && systemPrompt.trim() !== "")
    files.systemPrompt = await write("system-prompt.md", systemPrompt);
  const servers = invocation.agent.mcp_servers;
  if (servers !== undefined && Object.keys(servers).length > 0)
    files.mcpConfig = await write("mcp.json", JSON.stringify({ mcpServers: servers }));
  return files;
}
