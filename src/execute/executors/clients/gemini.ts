import { rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import { writePrivate } from "../../scaffold/write-private.ts";
import { refuseClaudeOnly } from "./claude-only.ts";
import { defineClient } from "./client.ts";
import type { Turn } from "./definition.ts";
import { fieldsOf } from "./fields.ts";
import { geminiConversation } from "./gemini-conversation.ts";
import { createGeminiReader } from "./gemini-messages.ts";
import { geminiPolicy } from "./gemini-policy.ts";
import { copyHomeFiles, hasOwnHome, homeFilesOf, openFolder, operatorHome } from "./home-files.ts";
import { permissionFlags } from "./permission-modes.ts";
import { readPlainFile } from "./plain-file.ts";
import { programs } from "./programs.ts";
import { withSystemPrefix } from "./system-prefix.ts";

export const gemini = defineClient({
  ...programs.gemini,
  variables: ["GEMINI_*", "GOOGLE_*"],
  can: { resume: true, fork: false },
  conversation: geminiConversation,
  async prepare(turn) {
    refuseClaudeOnly("gemini", turn);
    const own = await hasOwnHome(turn);
    if (own) await openHome(turn);
    return {
      args: geminiArgs(turn, await writePolicies(turn)),
      env: geminiEnv(turn, own),
      stdin: withSystemPrefix(turn),
      reader: createGeminiReader(turn),
    };
  },
});

/** Values stand behind `=`, so that none is ever taken for an option. */
export function geminiArgs({ invocation, mode, session }: Turn, policies: readonly string[]): string[] {
  const args = ["--output-format=stream-json", ...permissionFlags.gemini[mode]];
  for (const path of policies) args.push(`--policy=${path}`);
  if (invocation.agent.model !== undefined) args.push(`--model=${invocation.agent.model}`);
  if (session !== null) args.push(`--resume=${session}`);
  return args;
}

/** These it would take from a `.env` of the repository, trusted or not, unless they are set; empty counts as not given. */
const takenFromRepository = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"];

export function geminiEnv({ invocation, env, homeDir }: Turn, ownHome: boolean): Record<string, string> {
  const trusted = invocation.agent.trust_project_settings;
  return {
    GEMINI_CLI_TRUST_WORKSPACE: String(trusted),
    GEMINI_CLI_NO_RELAUNCH: "1",
    // without it each answer begins with a warning about the terminal there is none of
    COLORTERM: env["COLORTERM"] || "truecolor",
    ...(ownHome ? { GEMINI_CLI_HOME: homeDir } : {}),
    ...(trusted ? {} : Object.fromEntries(takenFromRepository.map((name) => [name, env[name] ?? ""]))),
  };
}

/** A list of files replaces the operator's own policies, so those are named too. */
async function writePolicies({ tmpDir, homeDir, mode, invocation }: Turn): Promise<string[]> {
  const name = "gemini-policy.toml";
  const ours = join(tmpDir, name);
  const theirs = join(homeDir, ".gemini", "policies");
  const found = await stat(theirs).catch(() => null); // what cannot be seen gemini would not see either
  const paths = [ours, ...(found?.isDirectory() ? [theirs] : [])];
  const split = paths.find((path) => path.includes(","));
  if (split !== undefined)
    throw new RunFailure(
      "refused",
      `gemini takes a comma in ${split} for the end of a path. Use a folder without one.`,
    );
  await writePrivate(tmpDir, name, geminiPolicy(mode, invocation.agent.permissions ?? {}));
  return paths;
}

const login = [
  "settings.json",
  "oauth_creds.json",
  "gemini-credentials.json",
  "google_accounts.json",
  "installation_id",
].map((name) => `.gemini/${name}`);

/**
 * In a HOME of the session's own the folder trust of the operator's settings is off: what is trusted is decided for
 * each run, and with it on gemini refuses to work in a folder that is not.
 */
async function openHome(turn: Turn): Promise<void> {
  const folder = await openFolder(turn.homeDir, ".gemini");
  await copyHomeFiles(operatorHome(turn), turn.homeDir, homeFilesOf(turn.config, login));
  const path = join(folder, "settings.json");
  const settings = await readSettings(path);
  const security = fieldsOf(settings["security"]);
  if (fieldsOf(security["folderTrust"])["enabled"] === false) return;
  const changed = { ...settings, security: { ...security, folderTrust: { enabled: false } } };
  // put in its place, not written through a link that may be there
  await writeFile(`${path}.${turn.invocation.run_id}`, JSON.stringify(changed, null, 2), { mode: 0o600, flag: "wx" });
  await rename(`${path}.${turn.invocation.run_id}`, path);
}

const maxSettings = 1024 * 1024;

async function readSettings(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return fieldsOf(JSON.parse((await readPlainFile(path, maxSettings)) ?? "{}"));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new RunFailure(
        "refused",
        `The settings of gemini are not plain JSON (${error.message}): comments have to go, as a HOME of the session's own gets them changed.`,
      );
    throw error;
  }
}
