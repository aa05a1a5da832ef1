import { realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import { rejectClaudeOnlyOptions } from "./claude-only-options.ts";
import { defineClient } from "./define-client.ts";
import { codexConversation } from "./codex-conversation.ts";
import { createCodexReader } from "./codex-messages.ts";
import { readRollout } from "./codex-rollout.ts";
import type { Turn } from "./definition.ts";
import { toGitVariables, disableRepositoryFilters } from "./git-filters.ts";
import {
  copyHomeFiles,
  hasOwnHome,
  readHomeFiles,
  inSubdirectory,
  createSubdirectory,
  getOperatorHome,
} from "./home-files.ts";
import { permissionFlags } from "./permission-modes.ts";
import { programs } from "./programs.ts";
import { prependSystemPrompt } from "./prepend-system-prompt.ts";
import { toTomlString } from "./toml.ts";

export const codex = defineClient({
  ...programs.codex,
  variables: ["OPENAI_*", "CODEX_*"],
  can: { resume: true, fork: true, fork_at_turn: true },
  conversation: codexConversation,
  async prepare(turn) {
    rejectClaudeOnlyOptions("codex", turn);
    if ((turn.invocation.agent.permissions?.denied_tools ?? []).length > 0)
      throw new RunFailure(
        "refused",
        "Codex cannot deny individual tools. Remove permissions.denied_tools and set permissions.mode instead.",
      );
    const { env, codexHome } = await openHome(turn);
    const filters = turn.invocation.agent.trust_project_settings ? [] : await disableRepositoryFilters(turn);
    const reader = createCodexReader(turn);
    return {
      args: toCodexArgs(turn, await realpath(turn.workDir), filters.length > 0 ? gitInShell : []),
      // codex runs git to find changes, and passes only these variables to it.
      env: { ...env, ...toGitVariables(filters) },
      stdin: prependSystemPrompt(turn),
      reader,
      // On startup, codex removes temporary files, including those of another codex that is just starting.
      exclusiveStartIn: codexHome,
      readAfterExit: () => readRollout(codexHome, reader.getSession()),
    };
  },
});

/**
 * Puts the options before `resume` and `fork`, which accept fewer of them than `exec`. Values follow `=` so that none
 * is parsed as an option.
 */
export function toCodexArgs(
  { invocation, mode, session, fork }: Turn,
  workDir: string,
  extraArgs: readonly string[] = [],
): string[] {
  const { agent } = invocation;
  const args = ["exec", "--json", "--skip-git-repo-check", ...permissionFlags.codex[mode], ...extraArgs];
  if (!agent.trust_project_settings) args.push(...toUntrustedArgs(workDir));
  if (agent.model !== undefined) args.push(`--model=${agent.model}`);
  if (session !== null) args.push(fork ? "fork" : "resume", session);
  return [...args, "-"];
}

/**
 * Codex passes the numbered variables to git, but the operator's shell policy may drop variables with KEY in their
 * names, and git fails if one is missing. With a count of 0, git uses GIT_CONFIG_PARAMETERS alone.
 */
const gitInShell = ['--config=shell_environment_policy.set.GIT_CONFIG_COUNT="0"'];

/**
 * With a writable sandbox, codex permanently trusts the repository and starts the MCP servers in its
 * `.codex/config.toml`, unless the directory is marked as untrusted. The parents are marked too, because one of them
 * may be the repository's root.
 */
function toUntrustedArgs(workDir: string): string[] {
  const projects = listWithParents(workDir).map((path) => `${toTomlString(path)}={trust_level="untrusted"}`);
  return [
    `--config=projects={${projects.join(",")}}`,
    "--config=project_doc_max_bytes=0",
    "--config=skills.include_instructions=false",
  ];
}

function listWithParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...listWithParents(parent)];
}

/**
 * Returns the CODEX_HOME. For a session with its own HOME it is `.codex` in that HOME, whatever the runner's CODEX_HOME
 * is.
 */
async function openHome(turn: Turn): Promise<{ env: Record<string, string>; codexHome: string }> {
  const operatorCodexHome = turn.env["CODEX_HOME"] || join(getOperatorHome(turn), ".codex");
  if (!(await hasOwnHome(turn))) return { env: {}, codexHome: operatorCodexHome };
  const codexHome = await createSubdirectory(turn.homeDir, ".codex");
  const names = readHomeFiles(turn.config, [".codex/auth.json", ".codex/config.toml"]);
  const codexFiles = names.filter((name) => name.startsWith(".codex/")).map((name) => name.slice(".codex/".length));
  await copyHomeFiles(operatorCodexHome, codexHome, codexFiles);
  await copyHomeFiles(
    getOperatorHome(turn),
    turn.homeDir,
    names.filter((name) => !name.startsWith(".codex/")),
  );
  if (turn.invocation.mode === "fork") await removeThreadIndex(turn.homeDir);
  return { env: { CODEX_HOME: codexHome }, codexHome };
}

/**
 * Codex's index of threads contains absolute paths. In a copied HOME they point to the original HOME, so codex must
 * rebuild the index.
 */
async function removeThreadIndex(homeDir: string): Promise<void> {
  await inSubdirectory(homeDir, ".codex", async (directory) => {
    for await (const entries of directory.entries(64))
      for (const { name, kind } of entries)
        if (kind !== "folder" && /^state_\d+\.sqlite/.test(name.toString())) await directory.remove(name);
  });
}
