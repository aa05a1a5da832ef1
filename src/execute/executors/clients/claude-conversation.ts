import { randomUUID } from "node:crypto";
import { takeFirstLines } from "./claude-transcript.ts";
import type { ConversationFiles } from "./definition.ts";

/**
 * Claude searches every directory in `projects` for a session, starting with the one named after the working directory.
 */
export const claudeConversation: ConversationFiles = {
  directory: ".claude",
  overridePath: (env) => env["CLAUDE_CONFIG_DIR"],
  async find(directory, session) {
    const files: { path: string; changedAt: number }[] = [];
    for (const project of await directory.listNames("projects")) {
      const path = `projects/${project}/${session}.jsonl`;
      const stat = await directory.stat(path);
      if (stat !== null) files.push({ path, ...stat });
    }
    return files
      .toSorted((a, b) => b.changedAt - a.changedAt)
      .slice(0, 1)
      .map(({ path }) => path);
  },
  async locate(name, { session, workDir }) {
    return name === `${session}.jsonl` ? `projects/${toProjectName(workDir)}/${name}` : null;
  },
  cut([file], turns) {
    const session = randomUUID();
    const cutResult = takeFirstLines(Buffer.from(file?.bytes ?? []).toString("utf8"), turns, session);
    if (!cutResult.ok) return cutResult;
    const bytes = Buffer.from(cutResult.entries.map((line) => `${line}\n`).join(""));
    return { ok: true, session, file: { name: `${session}.jsonl`, bytes } };
  },
};

const maxProjectCharacters = 200;

function toProjectName(directory: string): string {
  return directory.replaceAll(/[^a-zA-Z0-9]/g, "-").slice(0, maxProjectCharacters);
}
