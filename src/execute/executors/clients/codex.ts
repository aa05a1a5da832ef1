import { readdir, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import { refuseClaudeOnly } from "./claude-only.ts";
import { defineClient } from "./client.ts";
import { codexConversation } from "./codex-conversation.ts";
import { createCodexReader } from "./codex-messages.ts";
import { readRollout } from "./codex-rollout.ts";
import type { Turn } from "./definition.ts";
import { gitVariables, ownFiltersOff } from "./git-filters.ts";
import { copyHomeFiles, hasOwnHome, homeFilesOf, openFolder, operatorHome } from "./home-files.ts";
import { permissionFlags } from "./permission-modes.ts";
import { programs } from "./programs.ts";
import { withSystemPrefix } from "./system-prefix.ts";
import { tomlString } from "./toml.ts";

export const codex = defineClient({
  ...programs.codex,
  variables: ["OPENAI_*", "CODEX_*"],
  can: { resume: true, fork: true, fork_at_turn: true },
  conversation: codexConversation,
  async prepare(turn) {
    refuseClaudeOnly("codex", turn);
    if ((turn.invocation.agent.permissions?.denied_tools ?? []).length > 0)
      throw new RunFailure(
        "refused",
        "codex cannot be denied single tools (permissions.denied_tools): choose a permissions.mode.",
      );
    const { env, codexHome } = await openHome(turn);
    const filters = turn.invocation.agent.trust_project_settings ? [] : await ownFiltersOff(turn);
    const reader = createCodexReader(turn);
    return {
      args: codexArgs(turn, await realpath(turn.workDir), filters.length > 0 ? gitInShell : []),
      // it asks git what has changed, with everything in its way but these
      env: { ...env, ...gitVariables(filters) },
      stdin: withSystemPrefix(turn),
      reader,
      // it clears away what others have left in there, and with it what one that is just starting has put there
      startsAloneIn: codexHome,
      lookBack: () => readRollout(codexHome, reader.session()),
    };
  },
});

/** `resume` and `fork` take fewer options than `exec` itself, so these stand before them. Values never stand alone. */
export function codexArgs(
  { invocation, mode, session, fork }: Turn,
  workDir: string,
  more: readonly string[] = [],
): string[] {
  const { agent } = invocation;
  const args = ["exec", "--json", "--skip-git-repo-check", ...permissionFlags.codex[mode], ...more];
  if (!agent.trust_project_settings) args.push(...distrust(workDir));
  if (agent.model !== undefined) args.push(`--model=${agent.model}`);
  if (session !== null) args.push(fork ? "fork" : "resume", session);
  return [...args, "-"];
}

/**
 * Codex itself takes no other variables for git than the numbered ones, but of these the operator's policy for its
 * shell may drop all with KEY in their names, and git ends at the first that is missing. The other one has none.
 */
const gitInShell = ['--config=shell_environment_policy.set.GIT_CONFIG_COUNT="0"'];

/**
 * A sandbox that may write makes codex trust the repository for good, and then run the MCP servers of its
 * `.codex/config.toml`, unless the directory is known as untrusted. It also asks for the folders above it, as one of
 * them may be the repository's root.
 */
function distrust(workDir: string): string[] {
  const projects = withParents(workDir).map((path) => `${tomlString(path)}={trust_level="untrusted"}`);
  return [
    `--config=projects={${projects.join(",")}}`,
    "--config=project_doc_max_bytes=0",
    "--config=skills.include_instructions=false",
  ];
}

function withParents(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...withParents(parent)];
}

/** With a HOME of the session's own, its folder for codex is in there, whatever the runner's CODEX_HOME is. */
async function openHome(turn: Turn): Promise<{ env: Record<string, string>; codexHome: string }> {
  const theirs = turn.env["CODEX_HOME"] || join(operatorHome(turn), ".codex");
  if (!(await hasOwnHome(turn))) return { env: {}, codexHome: theirs };
  const codexHome = await openFolder(turn.homeDir, ".codex");
  const names = homeFilesOf(turn.config, [".codex/auth.json", ".codex/config.toml"]);
  const inside = names.filter((name) => name.startsWith(".codex/")).map((name) => name.slice(".codex/".length));
  await copyHomeFiles(theirs, codexHome, inside);
  await copyHomeFiles(
    operatorHome(turn),
    turn.homeDir,
    names.filter((name) => !name.startsWith(".codex/")),
  );
  if (turn.invocation.mode === "fork") await forgetPaths(codexHome);
  return { env: { CODEX_HOME: codexHome }, codexHome };
}

/** Its index of threads has whole paths, which in a copy lead back to the HOME it was copied from; it makes a new one. */
async function forgetPaths(codexHome: string): Promise<void> {
  for (const name of await readdir(codexHome))
    if (/^state_\d+\.sqlite/.test(name)) await rm(join(codexHome, name), { force: true });
}
