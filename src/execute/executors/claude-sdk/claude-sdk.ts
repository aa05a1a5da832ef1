import { homedir } from "node:os";
import { join } from "node:path";
import { agentSdk, type AgentSdk } from "../../../llm/claude-code/sdk.ts";
import { loadPackage } from "../../../llm/optional-package.ts";
import { RequestError } from "../../../model/errors.ts";
import type { Executor } from "../../../model/executor.ts";
import { defineExecutor, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { openClaudeHome, getQuietVariables } from "../clients/claude-home.ts";
import { getOperatorHome } from "../clients/home-files.ts";
import { authorizeFullAuto } from "../clients/permission-modes.ts";
import { converse } from "./converse.ts";
import type { ClaudeSdkHost, ClaudeEnvironment } from "./host.ts";
import { getMode } from "./options.ts";

/**
 * Runs Claude Code through its Agent SDK: logs each message as it arrives, asks people, and moves sessions between
 * runners.
 */
export function createClaudeSdkExecutor(host: ClaudeSdkHost): Executor {
  return defineExecutor({
    name: "claude-sdk",
    can: { resume: true, fork: true, ask: true, input: true, state: true, park: true, fork_at_turn: true },
    variables: ["ANTHROPIC_*", "CLAUDE_*"],
    takesPreset: true,
    async execute(job) {
      const { agent, executor_config: config } = job.invocation;
      rejectUnsupported(job);
      const sdk = await loadSdk(job, host);
      await authorizeFullAuto(job, { mode: getMode(agent), config }, host);
      return converse(job, { ...host, sdk, ...(await openEnvironment(job, host)) });
    },
  });
}

function rejectUnsupported({ invocation, prompt }: Job): void {
  const unsupported = (["provider", "output_schema"] as const).filter((key) => invocation.agent[key] !== undefined);
  if (unsupported.length > 0)
    throw new RunFailure(
      "refused",
      `claude-sdk does not support ${unsupported.join(" or ")}: it uses its own provider and does not check its answer against a schema. Remove ${unsupported.length > 1 ? "them" : "it"} from the agent.`,
    );
  if (prompt.trim() === "") throw new RunFailure("refused", "The prompt is empty. Pass a prompt for the run.");
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
 * Returns the variables that the SDK needs. The runner adds its base list, `variables` above and the profile's
 * variables.
 */
async function openEnvironment(
  { invocation, homeDir, tmpDir }: Job,
  { env, isRoot }: ClaudeSdkHost,
): Promise<ClaudeEnvironment> {
  const sessionConfigDir = await openClaudeHome({ env, homeDir, config: invocation.executor_config });
  const configDir = sessionConfigDir ?? env["CLAUDE_CONFIG_DIR"] ?? join(getOperatorHome({ env }), ".claude");
  // Without CLAUDE_CONFIG_DIR, the SDK looks for transcripts in the HOME of this process.
  const isDefault = sessionConfigDir === null && configDir === join(homedir(), ".claude");
  const variables = {
    HOME: homeDir,
    TMPDIR: tmpDir,
    ...getQuietVariables(env),
    ...(isDefault ? {} : { CLAUDE_CONFIG_DIR: configDir }),
    // Offer MCP tools directly instead of behind a tool search.
    ENABLE_TOOL_SEARCH: env["ENABLE_TOOL_SEARCH"] ?? "0",
    // As root, Claude Code refuses this mode without IS_SANDBOX. authorizeFullAuto() has checked that it is allowed.
    ...(getMode(invocation.agent) === "bypassPermissions" && isRoot ? { IS_SANDBOX: "1" } : {}),
  };
  return { env: variables, configDir, sessionHome: sessionConfigDir === null ? null : homeDir };
}
