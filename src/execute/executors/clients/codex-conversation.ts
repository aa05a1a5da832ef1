import { z } from "zod";
import { firstRolloutTurns } from "./codex-turns.ts";
import { rolloutDays } from "./codex-rollout.ts";
import type { ClientFolder, ConversationFiles } from "./definition.ts";

const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const rolloutName = new RegExp(`^rollout-(\\d{4})-(\\d\\d)-(\\d\\d)T\\d\\d-\\d\\d-\\d\\d-${uuid}\\.jsonl$`);

/** A thread that was forked has only what was said since: the rest is in the file of the thread it was forked from. */
export const codexConversation: ConversationFiles = {
  folder: ".codex",
  elsewhere: (env) => env["CODEX_HOME"],
  async find(folder, session) {
    const paths: string[] = [];
    for (let thread: string | null = session; thread !== null && paths.length < mostForks;) {
      const path = await rolloutOf(folder, thread);
      if (path === null || paths.includes(path)) break;
      paths.push(path);
      thread = await originOf(folder, path);
    }
    return paths;
  },
  async place(name) {
    const [, year, month, day] = rolloutName.exec(name) ?? [];
    return year === undefined ? null : `sessions/${year}/${month}/${day}/${name}`;
  },
  cut: firstRolloutTurns,
};

const mostForks = 100;

async function rolloutOf(folder: ClientFolder, thread: string): Promise<string | null> {
  for (const day of rolloutDays(thread)) {
    const names = await folder.names(`sessions/${day}`);
    const name = names.find((each) => each.endsWith(`-${thread}.jsonl`));
    if (name !== undefined) return `sessions/${day}/${name}`;
  }
  return null;
}

/** The first line has all instructions of the model. */
const maxFirstLine = 4 * 1024 * 1024;
const metaSchema = z.object({ payload: z.object({ forked_from_id: z.uuid().nullish() }) });

async function originOf(folder: ClientFolder, path: string): Promise<string | null> {
  const text = (await folder.read(path, maxFirstLine))?.toString("utf8") ?? "";
  try {
    return metaSchema.parse(JSON.parse(text.slice(0, text.indexOf("\n")))).payload.forked_from_id ?? null;
  } catch (error) {
    // a file that codex did not finish; it will say so itself
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}
