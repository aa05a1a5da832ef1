import { z } from "zod";
import type { ClientFolder, ConversationFiles } from "./definition.ts";

const chatName = /^session-[0-9T-]{1,40}-[0-9a-f]{8}\.jsonl$/;

/** Gemini keeps chats by project. A folder in `tmp` is the one of the project that its `.project_root` names. */
export const geminiConversation: ConversationFiles = {
  folder: ".gemini",
  elsewhere: ({ GEMINI_CLI_HOME: home }) => (home ? `${home}/.gemini` : undefined),
  async find(folder, session) {
    const found: { path: string; size: number }[] = [];
    for (const project of await folder.names("tmp"))
      for (const name of await folder.names(`tmp/${project}/chats`)) {
        if (!name.endsWith(`-${session.slice(0, 8)}.jsonl`)) continue;
        const path = `tmp/${project}/chats/${name}`;
        const seen = await folder.look(path);
        if (seen !== null && (await sessionIn(folder, path)) === session) found.push({ path, ...seen });
      }
    // each resume leaves a file of the same session with nothing said in it
    return found
      .toSorted((a, b) => b.size - a.size)
      .slice(0, 1)
      .map(({ path }) => path);
  },
  async place(name, { folder, session, workDir }) {
    if (!chatName.test(name)) return null;
    return `tmp/${await projectOf(folder, session, workDir)}/chats/${name}`;
  },
};

const projectName = /^[a-z0-9][a-z0-9-]*$/;
const rootFile = ".project_root";

async function projectOf(folder: ClientFolder, session: string, workDir: string): Promise<string> {
  const known = await registeredName(folder, workDir);
  if (known !== null) return known;
  for (const name of await folder.names("tmp"))
    if (projectName.test(name) && (await textOf(folder, `tmp/${name}/${rootFile}`))?.trim() === workDir) return name;
  const own = `drover-${session}`;
  await folder.write(`tmp/${own}/${rootFile}`, Buffer.from(workDir));
  return own;
}

const registrySchema = z.object({ projects: z.record(z.string(), z.string().regex(projectName)) });

async function registeredName(folder: ClientFolder, workDir: string): Promise<string | null> {
  const registry = registrySchema.safeParse(jsonOf(await textOf(folder, "projects.json")));
  return registry.data?.projects[workDir] ?? null;
}

const firstLineSchema = z.object({ sessionId: z.string() });

async function sessionIn(folder: ClientFolder, path: string): Promise<string | null> {
  const text = await textOf(folder, path);
  return firstLineSchema.safeParse(jsonOf(text?.split("\n", 1)[0] ?? null)).data?.sessionId ?? null;
}

const maxRead = 1024 * 1024;

async function textOf(folder: ClientFolder, path: string): Promise<string | null> {
  return (await folder.read(path, maxRead))?.toString("utf8") ?? null;
}

function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
