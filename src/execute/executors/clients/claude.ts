import { writePrivate } from "../../scaffold/write-private.ts";
import { claudeConversation } from "./claude-conversation.ts";
import { openClaudeHome, quietVariables } from "./claude-home.ts";
import { createClaudeReader } from "./claude-messages.ts";
import { defineClient } from "./client.ts";
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
      args: claudeArgs(turn, files),
      env: { ...(await ownFolder(turn)), ...claudeEnv(turn) },
      reader: createClaudeReader(undefined, turn.invocation.agent.permissions?.denied_tools),
    };
  },
});

interface Files {
  systemPrompt?: string;
  mcpConfig?: string;
}

/** Values stand behind `=`, so that none is ever taken for an option. The prompt is not here: it comes by stdin. */
export function claudeArgs({ invocation, mode, session, fork }: Turn, files: Files): string[] {
  const { agent } = invocation;
  const args = ["-p", "--output-format=stream-json", "--verbose", "--include-partial-messages"];
  args.push(...permissionFlags.claude[mode]);
  // without `project` and `local` nothing of the repository's own is read: settings, hooks, CLAUDE.md, skills, agents
  if (!agent.trust_project_settings) args.push("--setting-sources=user", "--strict-mcp-config");
  for (const tool of agent.permissions?.allowed_tools ?? []) args.push(`--allowedTools=${tool}`);
  for (const tool of agent.permissions?.denied_tools ?? []) args.push(`--disallowedTools=${tool}`);
  if (agent.model !== undefined) args.push(`--model=${agent.model}`);
  if (agent.max_turns !== undefined) args.push(`--max-turns=${agent.max_turns}`);
  if (agent.budget !== undefined) args.push(`--max-budget-usd=${agent.budget.cost_usd}`);
  if (files.systemPrompt !== undefined) args.push(`--append-system-prompt-file=${files.systemPrompt}`);
  if (files.mcpConfig !== undefined) args.push(`--mcp-config=${files.mcpConfig}`);
  if (session !== null) args.push(`--resume=${session}`);
  if (fork) args.push("--fork-session");
  return args;
}

function claudeEnv({ env, mode, isRoot }: Turn): Record<string, string> {
  return {
    ...quietVariables(env),
    // it refuses this mode as root unless told so; we are here only where the operator has allowed it
    ...(mode === "bypassPermissions" && isRoot ? { IS_SANDBOX: "1" } : {}),
  };
}

/** The operator's CLAUDE_CONFIG_DIR does not undo a HOME of the session's own. */
async function ownFolder(turn: Turn): Promise<Record<string, string>> {
  const own = await openClaudeHome(turn);
  return own !== null && turn.env["CLAUDE_CONFIG_DIR"] ? { CLAUDE_CONFIG_DIR: own } : {};
}

/** What may be long or secret goes through files that only we read, not through a command line that everybody sees. */
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
