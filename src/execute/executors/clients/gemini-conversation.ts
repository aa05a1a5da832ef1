import { z } from "zod";
import type { ClientDirectory, ConversationFiles } from "./definition.ts";

const chatName = /^session-[0-9T-]{1,40}-[0-9a-f]{8}\.jsonl$/;

/** Gemini keeps chats by project. Each directory in `tmp` names its project in `.project_root`. */
export const geminiConversation: ConversationFiles = {
  directory: ".gemini",
  overridePath: ({ GEMINI_CLI_HOME: home }) => (home ? `${home}/.gemini` : undefined),
  async find(directory, session) {
    const found: { path: string; size: number }[] = [];
    for (const project of await directory.names("tmp"))
      for (const name of await directory.names(`tmp/${project}/chats`)) {
        if (!name.endsWith(`-${session.slice(0, 8)}.jsonl`)) continue;
        const path = `tmp/${project}/chats/${name}`;
        const seen = await directory.stat(path);
        if (seen !== null && (await sessionIn(directory, path)) === session) found.push({ path, ...seen });
      }
    // each resume leaves another file for the session, with no messages in it
    return found
      .toSorted((a, b) => b.size - a.size)
      .slice(0, 1)
      .map(({ path }) => path);
  },
  async pathOf(name, { directory, session, workDir }) {
    if (!chatName.test(name)) return null;
    return `tmp/${await projectOf(directory, session, workDir)}/chats/${name}`;
  },
};

const projectName = /^[a-z0-9][a-z0-9-]*$/;
const rootFile = ".project_root";

async function projectOf(directory: ClientDirectory, session: string, workDir: string): Promise<string> {
  const known = await registeredName(directory, workDir);
  if (known !== null) return known;
  for (const name of await directory.names("tmp"))
    if (projectName.test(name) && (await textOf(directory, `tmp/${name}/${rootFile}`))?.trim() === workDir) return name;
  const own = `drover-${session}`;
  await directory.write(`tmp/${own}/${rootFile}`, Buffer.from(workDir));
  return own;
}

const registrySchema = z.object({ projects: z.record(z.string(), z.string().regex(projectName)) });

async function registeredName(directory: ClientDirectory, workDir: string): Promise<string | null> {
  const registry = registrySchema.safeParse(jsonOf(await textOf(directory, "projects.json")));
  return registry.data?.projects[workDir] ?? null;
}

const firstLineSchema = z.object({ sessionId: z.string() });

async function sessionIn(directory: ClientDirectory, path: string): Promise<string | null> {
  const text = await textOf(directory, path);
  return firstLineSchema.safeParse(jsonOf(text?.split("\n", 1)[0] ?? null)).data?.sessionId ?? null;
}

const maxRead = 1024 * 1024;

async function textOf(directory: ClientDirectory, path: string): Promise<string | null> {
  return (await directory.read(path, maxRead))?.toString("utf8") ?? null;
}

function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
