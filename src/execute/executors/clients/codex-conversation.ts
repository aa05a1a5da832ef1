import { z } from "zod";
import { takeFirstRolloutTurns } from "./codex-turns.ts";
import { listRolloutDays } from "./codex-rollout.ts";
import type { ClientDirectory, ConversationFiles } from "./definition.ts";

const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const rolloutName = new RegExp(`^rollout-(\\d{4})-(\\d\\d)-(\\d\\d)T\\d\\d-\\d\\d-\\d\\d-${uuid}\\.jsonl$`);

/** The file of a forked thread contains only its own turns. The earlier turns stay in the file of the original thread. */
export const codexConversation: ConversationFiles = {
  directory: ".codex",
  overridePath: (env) => env["CODEX_HOME"],
  async find(directory, session) {
    const paths: string[] = [];
    for (let thread: string | null = session; thread !== null && paths.length < maxForks;) {
      const path = await findRollout(directory, thread);
      if (path === null || paths.includes(path)) break;
      paths.push(path);
      thread = await readParentThread(directory, path);
    }
    return paths;
  },
  async locate(name) {
    const [, year, month, day] = rolloutName.exec(name) ?? [];
    return year === undefined ? null : `sessions/${year}/${month}/${day}/${name}`;
  },
  cut: takeFirstRolloutTurns,
};

const maxForks = 100;

async function findRollout(directory: ClientDirectory, thread: string): Promise<string | null> {
  for (const day of listRolloutDays(thread)) {
    const names = await directory.listNames(`sessions/${day}`);
    const name = names.find((candidate) => candidate.endsWith(`-${thread}.jsonl`));
    if (name !== undefined) return `sessions/${day}/${name}`;
  }
  return null;
}

/** The first line contains the model's full instructions, so it can be long. */
const maxFirstLineBytes = 4 * 1024 * 1024;
const metaSchema = z.object({ payload: z.object({ forked_from_id: z.uuid().nullish() }) });

async function readParentThread(directory: ClientDirectory, path: string): Promise<string | null> {
  const text = (await directory.read(path, maxFirstLineBytes))?.toString("utf8") ?? "";
  try {
    return metaSchema.parse(JSON.parse(text.slice(0, text.indexOf("\n")))).payload.forked_from_id ?? null;
  } catch (error) {
    // The file is incomplete, which codex itself reports.
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}
