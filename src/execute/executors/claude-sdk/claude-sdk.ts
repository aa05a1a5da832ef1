import { homedir } from "node:os";
import { join } from "node:path";
import { agentSdk, type AgentSdk } from "../../../llm/claude-code/sdk.ts";
import { loadPackage } from "../../../llm/optional-package.ts";
import { RequestError } from "../../../model/errors.ts";
import type { Executor } from "../../../model/executor.ts";
import { defineExecutor, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { openClaudeHome, quietVariables } from "../clients/claude-home.ts";
import { operatorHome } from "../clients/home-files.ts";
import { authorizeFullAuto } from "../clients/permission-modes.ts";
import { converse } from "./converse.ts";
import type { ClaudeSdkHost, Place } from "./host.ts";
import { modeOf } from "./options.ts";

/** Claude Code by its Agent SDK: each message in the log as it arrives, questions to people, sessions that move. */
export function createClaudeSdkExecutor(host: ClaudeSdkHost): Executor {
  return defineExecutor({
    name: "claude-sdk",
    can: { resume: true, fork: true, ask: true, input: true, state: true, park: true, fork_at_turn: true },
    variables: ["ANTHROPIC_*", "CLAUDE_*"],
    takesPreset: true,
    async execute(job) {
      const { agent, executor_config: config } = job.invocation;
      refuseUseless(job);
      const sdk = await loadSdk(job, host);
      await authorizeFullAuto(job, { mode: modeOf(agent), config }, host);
      return converse(job, { ...host, sdk, ...(await openPlace(job, host)) });
    },
  });
}

function refuseUseless({ invocation, prompt }: Job): void {
  const useless = (["provider", "output_schema"] as const).filter((key) => invocation.agent[key] !== undefined);
  if (useless.length > 0)
    throw new RunFailure(
      "refused",
      `claude-sdk has no use for ${useless.join(" and ")} of the agent: its provider is its own, and what it answers is not checked. Remove that.`,
    );
  if (prompt.trim() === "") throw new RunFailure("refused", "There is nothing to do: give the run a prompt.");
}

async function loadSdk({ runnerDir }: Job, { env }: ClaudeSdkHost): Promise<AgentSdk> {
  try {
    return await loadPackage<AgentSdk>(agentSdk, { directory: runnerDir, env }, "The executor claude-sdk");
  } catch (error) {
    if (error instanceof RequestError) throw new RunFailure("dependency_missing", `${error.message} ${error.next}`);
    throw error;
  }
}

/**
 * The variables that the SDK itself has to know. The rest of what the process gets is the runner's affair: its base
 * list, the names above, and the profile's.
 */
async function openPlace({ invocation, homeDir, tmpDir }: Job, { env, isRoot }: ClaudeSdkHost): Promise<Place> {
  const own = await openClaudeHome({ env, homeDir, config: invocation.executor_config });
  const folder = own ?? env["CLAUDE_CONFIG_DIR"] ?? join(operatorHome({ env }), ".claude");
  // by this the SDK finds transcripts; without it, it looks in the HOME of this very process
  const isUsual = own === null && folder === join(homedir(), ".claude");
  const variables = {
    HOME: homeDir,
    TMPDIR: tmpDir,
    ...quietVariables(env),
    ...(isUsual ? {} : { CLAUDE_CONFIG_DIR: folder }),
    // tools of MCP servers are offered at once, and not behind a search for them
    ENABLE_TOOL_SEARCH: env["ENABLE_TOOL_SEARCH"] ?? "0",
    // refused as root otherwise; we are here only where the operator has allowed it
    ...(modeOf(invocation.agent) === "bypassPermissions" && isRoot ? { IS_SANDBOX: "1" } : {}),
  };
  return { env: variables, folder, ownHome: own === null ? null : homeDir };
}
