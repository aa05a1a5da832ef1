import { join } from "node:path";
import type { Turn } from "./definition.ts";
import { copyHomeFiles, hasOwnHome, readHomeFiles, getOperatorHome } from "./home-files.ts";

const homeFiles = [".claude/.credentials.json", ".claude/settings.json"];

/**
 * Copies the login into a session's own HOME and returns the path of `.claude` in it.
 * Returns null if the run uses the operator's HOME.
 */
export async function openClaudeHome(turn: Pick<Turn, "env" | "homeDir" | "config">): Promise<string | null> {
  if (!(await hasOwnHome(turn))) return null;
  await copyHomeFiles(getOperatorHome(turn), turn.homeDir, readHomeFiles(turn.config, homeFiles));
  return join(turn.homeDir, ".claude");
}

/** Turns off update checks and telemetry, unless the operator has set these variables. */
export function getQuietVariables(env: Turn["env"]): Record<string, string> {
  const names = ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"];
  return Object.fromEntries(names.map((name) => [name, env[name] ?? "1"]));
}
