import { join } from "node:path";
import type { Turn } from "./definition.ts";
import { copyHomeFiles, hasOwnHome, homeFilesOf, operatorHome } from "./home-files.ts";

const homeFiles = [".claude/.credentials.json", ".claude/settings.json"];

/** A HOME of the session's own gets the login. Returns Claude's folder in it; null where HOME is the operator's. */
export async function openClaudeHome(turn: Pick<Turn, "env" | "homeDir" | "config">): Promise<string | null> {
  if (!(await hasOwnHome(turn))) return null;
  await copyHomeFiles(operatorHome(turn), turn.homeDir, homeFilesOf(turn.config, homeFiles));
  return join(turn.homeDir, ".claude");
}

/** Keeps Claude from the network but for its work, unless the operator says otherwise. */
export function quietVariables(env: Turn["env"]): Record<string, string> {
  const names = ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"];
  return Object.fromEntries(names.map((name) => [name, env[name] ?? "1"]));
}
