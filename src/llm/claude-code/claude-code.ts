import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Model } from "../conversation.ts";
import type { ProviderDefinition } from "../definition.ts";
import { cancelled } from "../faults.ts";
import { findPackage, loadPackage } from "../optional-package.ts";
import { type AgentSdk, agentSdk } from "./sdk.ts";
import { LiveSession, type SessionHost } from "./live-session.ts";
import type { Environment } from "../../model/environment.ts";

/** Runs Claude through Claude Code's Agent SDK, with Claude Code's login and Drover's tools. */
export const claudeCode: ProviderDefinition = {
  keyVariable: null,
  baseUrlVariable: "ANTHROPIC_BASE_URL",
  defaultModel: "sonnet",
  isReady: async (host) => findPackage(agentSdk, host) !== null && (await hasLogin(host.env)),
  async open({ base_url }, { env, start, workDirectory, directory }) {
    const sdk = await loadPackage<AgentSdk>(agentSdk, { directory, env }, "The provider claude-code");
    return createModel({ sdk, start, workDirectory, env: buildEnvironment(env, base_url) });
  },
};

/** Keeps one process for the answers of a run. A new process resumes from the conversation. */
function createModel(host: SessionHost): Model {
  let live: LiveSession | null = null;
  return {
    async generate(conversation, options) {
      const { signal } = options;
      if (signal.aborted) return { ok: false, error: cancelled };
      if (!live?.canContinue(conversation)) {
        await live?.close();
        live = new LiveSession(conversation, host);
      }
      const result = await live.generate(conversation, options);
      // A failed request stays in the process's history, so the process cannot be reused.
      if (!live.isUsable) {
        await live.close();
        live = null;
      }
      return result;
    },
    close: async () => live?.close(),
  };
}

const forwardedNames = /^(?:ANTHROPIC_|CLAUDE_|HOME$|PATH$|USER$|LANG$|(?:https?|no)_proxy$)/i;

function buildEnvironment(env: Environment, base_url: string | undefined): Record<string, string> {
  const forwardedVariables = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && forwardedNames.test(entry[0]),
  );
  return {
    ...Object.fromEntries(forwardedVariables),
    ...(base_url === undefined ? {} : { ANTHROPIC_BASE_URL: base_url }),
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    // The agent loop itself retries, compacts and shortens results, and records that.
    CLAUDE_CODE_MAX_RETRIES: "1",
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
    DISABLE_COMPACT: "1",
    MAX_MCP_OUTPUT_TOKENS: "10000000",
    ENABLE_TOOL_SEARCH: "0",
    // A call may wait for a person's answer.
    MCP_TOOL_TIMEOUT: String(2 ** 31 - 1),
  };
}

/** Reports whether a variable contains a key or token, or `claude` has a login file that can be read. */
async function hasLogin(env: Environment): Promise<boolean> {
  const variables = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
  if (variables.some((name) => env[name])) return true;
  const home = env["HOME"] ?? homedir();
  const configDir = env["CLAUDE_CONFIG_DIR"] ?? join(home, ".claude");
  return isReadable(join(configDir, ".credentials.json"));
}

async function isReadable(path: string): Promise<boolean> {
  try {
    await readFile(path);
    return true;
  } catch {
    return false;
  }
}
