import { stat } from "node:fs/promises";
import { join } from "node:path";
import { RunFailure } from "../../scaffold/run-failure.ts";
import { writePrivate } from "../../scaffold/write-private.ts";
import { rejectClaudeOnlyOptions } from "./claude-only-options.ts";
import { defineClient } from "./define-client.ts";
import type { Turn } from "./definition.ts";
import { toFields } from "./fields.ts";
import { geminiConversation } from "./gemini-conversation.ts";
import { createGeminiReader } from "./gemini-messages.ts";
import { toGeminiPolicy } from "./gemini-policy.ts";
import { openClientDirectory } from "./client-directory.ts";
import { copyHomeFiles, hasOwnHome, readHomeFiles, getOperatorHome } from "./home-files.ts";
import { permissionFlags } from "./permission-modes.ts";
import { readRegularFile } from "./read-regular-file.ts";
import { programs } from "./programs.ts";
import { prependSystemPrompt } from "./prepend-system-prompt.ts";

export const gemini = defineClient({
  ...programs.gemini,
  variables: ["GEMINI_*", "GOOGLE_*"],
  can: { resume: true, fork: false },
  conversation: geminiConversation,
  async prepare(turn) {
    rejectClaudeOnlyOptions("gemini", turn);
    const isOwnHome = await hasOwnHome(turn);
    if (isOwnHome) await openHome(turn);
    return {
      args: toGeminiArgs(turn, await writePolicies(turn)),
      env: toGeminiEnv(turn, isOwnHome),
      stdin: prependSystemPrompt(turn),
      reader: createGeminiReader(turn),
    };
  },
});

/** Values follow `=` so that none is parsed as an option. */
export function toGeminiArgs({ invocation, mode, session }: Turn, policies: readonly string[]): string[] {
  const args = ["--output-format=stream-json", ...permissionFlags.gemini[mode]];
  for (const path of policies) args.push(`--policy=${path}`);
  if (invocation.agent.model !== undefined) args.push(`--model=${invocation.agent.model}`);
  if (session !== null) args.push(`--resume=${session}`);
  return args;
}

/**
 * Gemini reads these from the repository's `.env`, even if untrusted, unless they are set. It treats an empty value as
 * no value, but does not replace it.
 */
const readFromRepository = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"];

export function toGeminiEnv({ invocation, env, homeDir }: Turn, isOwnHome: boolean): Record<string, string> {
  const isTrusted = invocation.agent.trust_project_settings;
  return {
    GEMINI_CLI_TRUST_WORKSPACE: String(isTrusted),
    GEMINI_CLI_NO_RELAUNCH: "1",
    // Otherwise each answer starts with a warning about the terminal.
    COLORTERM: env["COLORTERM"] || "truecolor",
    ...(isOwnHome ? { GEMINI_CLI_HOME: homeDir } : {}),
    ...(isTrusted ? {} : Object.fromEntries(readFromRepository.map((name) => [name, env[name] ?? ""]))),
  };
}

/** Returns the paths for `--policy`. It replaces the operator's policies, so their directory is included. */
async function writePolicies({ tmpDir, homeDir, mode, invocation }: Turn): Promise<string[]> {
  const name = "gemini-policy.toml";
  const runPolicy = join(tmpDir, name);
  const operatorPolicies = join(homeDir, ".gemini", "policies");
  const stats = await stat(operatorPolicies).catch(() => null); // Gemini could not read it either.
  const paths = [runPolicy, ...(stats?.isDirectory() ? [operatorPolicies] : [])];
  const pathWithComma = paths.find((path) => path.includes(","));
  if (pathWithComma !== undefined)
    throw new RunFailure(
      "refused",
      `gemini would split the path ${pathWithComma} at its comma. Use a directory without a comma in its path.`,
    );
  await writePrivate(tmpDir, name, toGeminiPolicy(mode, invocation.agent.permissions ?? {}));
  return paths;
}

const loginFiles = [
  "settings.json",
  "oauth_creds.json",
  "gemini-credentials.json",
  "google_accounts.json",
  "installation_id",
].map((name) => `.gemini/${name}`);

/**
 * Turns off folder trust in a session's own HOME. Drover decides for each run whether to trust the repository, and with
 * folder trust gemini refuses to work in an untrusted directory.
 */
async function openHome(turn: Turn): Promise<void> {
  await copyHomeFiles(getOperatorHome(turn), turn.homeDir, readHomeFiles(turn.config, loginFiles));
  const settings = await readSettings(turn.homeDir);
  const security = toFields(settings["security"]);
  if (toFields(security["folderTrust"])["enabled"] === false) return;
  const newSettings = { ...settings, security: { ...security, folderTrust: { enabled: false } } };
  const directory = await openClientDirectory(turn, { name: ".gemini" });
  await directory.write("settings.json", Buffer.from(JSON.stringify(newSettings, null, 2)));
}

const maxSettingsBytes = 1024 * 1024;

async function readSettings(homeDir: string): Promise<Readonly<Record<string, unknown>>> {
  const name = ".gemini/settings.json";
  try {
    return toFields(JSON.parse((await readRegularFile(homeDir, name, maxSettingsBytes)) ?? "{}"));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new RunFailure(
        "refused",
        `${join(homeDir, name)} is not plain JSON (${error.message}). Remove its comments: Drover changes a copy of it for the session's own HOME.`,
      );
    throw error;
  }
}
