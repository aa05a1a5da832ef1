import { randomUUID } from "node:crypto";
import { firstLines } from "./claude-transcript.ts";
import type { ConversationFiles } from "./definition.ts";

/** Claude looks for a session in all folders of `projects`, and first in the one that is named after its directory. */
export const claudeConversation: ConversationFiles = {
  folder: ".claude",
  elsewhere: (env) => env["CLAUDE_CONFIG_DIR"],
  async find(folder, session) {
    const found: { path: string; changedAt: number }[] = [];
    for (const project of await folder.names("projects")) {
      const path = `projects/${project}/${session}.jsonl`;
      const seen = await folder.look(path);
      if (seen !== null) found.push({ path, ...seen });
    }
    return found
      .toSorted((a, b) => b.changedAt - a.changedAt)
      .slice(0, 1)
      .map(({ path }) => path);
  },
  async place(name, { session, workDir }) {
    return name === `${session}.jsonl` ? `projects/${projectOf(workDir)}/${name}` : null;
  },
  cut([file], turns) {
    const session = randomUUID();
    const kept = firstLines(Buffer.from(file?.bytes ?? []).toString("utf8"), turns, session);
    if (!kept.ok) return kept;
    const bytes = Buffer.from(kept.entries.map((line) => `${line}\n`).join(""));
    return { ok: true, session, file: { name: `${session}.jsonl`, bytes } };
  },
};

const longestProject = 200;

function projectOf(directory: string): string {
  return directory.replaceAll(/[^a-zA-Z0-9]/g, "-").slice(0, longestProject);
}
