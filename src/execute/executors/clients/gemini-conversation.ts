import { z } from "zod";
import type { ClientDirectory, ConversationFiles } from "./definition.ts";

const chatName = /^session-[0-9T-]{1,40}-[0-9a-f]{8}\.jsonl$/;

/** Gemini keeps chats by project. Each directory in `tmp` names its project in `.project_root`. */
export const geminiConversation: ConversationFiles = {
  directory: ".gemini",
  overridePath: ({ GEMINI_CLI_HOME: home }) => (home ? `${home}/.gemini` : undefined),
  async find(directory, session) {
    const chats: { path: string; size: number }[] = [];
    for (const project of await directory.listNames("tmp"))
      for (const name of await directory.listNames(`tmp/${project}/chats`)) {
        if (!name.endsWith(`-${session.slice(0, 8)}.jsonl`)) continue;
        const path = `tmp/${project}/chats/${name}`;
        const stat = await directory.stat(path);
        if (stat !== null && (await readSessionId(directory, path)) === session) chats.push({ path, ...stat });
      }
    // Choose the largest, because each resume leaves another file for the session that has no messages.
    return chats
      .toSorted((a, b) => b.size - a.size)
      .slice(0, 1)
      .map(({ path }) => path);
  },
  async locate(name, { directory, session, workDir }) {
    if (!chatName.test(name)) return null;
    return `tmp/${await findProject(directory, session, workDir)}/chats/${name}`;
  },
};

const projectName = /^[a-z0-9][a-z0-9-]*$/;
const rootFile = ".project_root";

async function findProject(directory: ClientDirectory, session: string, workDir: string): Promise<string> {
  const registeredName = await readRegisteredName(directory, workDir);
  if (registeredName !== null) return registeredName;
  for (const name of await directory.listNames("tmp"))
    if (projectName.test(name) && (await readText(directory, `tmp/${name}/${rootFile}`))?.trim() === workDir)
      return name;
  const newProject = `drover-${session}`;
  await directory.write(`tmp/${newProject}/${rootFile}`, Buffer.from(workDir));
  return newProject;
}

const registrySchema = z.object({ projects: z.record(z.string(), z.string().regex(projectName)) });

async function readRegisteredName(directory: ClientDirectory, workDir: string): Promise<string | null> {
  const registry = registrySchema.safeParse(parseJson(await readText(directory, "projects.json")));
  return registry.data?.projects[workDir] ?? null;
}

const firstLineSchema = z.object({ sessionId: z.string() });

async function readSessionId(directory: ClientDirectory, path: string): Promise<string | null> {
  const text = await readText(directory, path);
  return firstLineSchema.safeParse(parseJson(text?.split("\n", 1)[0] ?? null)).data?.sessionId ?? null;
}

const maxReadBytes = 1024 * 1024;

async function readText(directory: ClientDirectory, path: string): Promise<string | null> {
  return (await directory.read(path, maxReadBytes))?.toString("utf8") ?? null;
}

function parseJson(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
