import { realpath } from "node:fs/promises";
import type { ConfinedDirectory } from "../../../tools/confined-directory.ts";
import { errorCode } from "../../scaffold/find-files.ts";
import { inDirectory, toPathParts } from "../../scaffold/directory-walker.ts";

/** Only this much is read, from the end of the file, where the last turn is. */
const maxBytes = 32 * 1024 * 1024;

/**
 * Returns lines of the last turn from the thread's file, if the file exists. They contain facts that the stream omits:
 * the usage of this turn alone, and calls that the sandbox blocked.
 */
export async function readRollout(codexHome: string, thread: string | null): Promise<string[]> {
  const endLine = '{"type":"rollout_end"}';
  if (thread === null) return [endLine];
  try {
    return [...(await readLastTurn(codexHome, thread)), endLine];
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const message = `Cannot read codex's file for the thread: ${error.message}`;
    return [JSON.stringify({ type: "error", message }), endLine];
  }
}

async function readLastTurn(codexHome: string, thread: string): Promise<string[]> {
  const text = await readRolloutEnd(codexHome, thread);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const start = lines.findLastIndex((line) => line.includes('"type":"task_started"'));
  return lines.slice(start + 1).filter((line) => usedLine.test(line));
}

/** Other lines are skipped, because they are long and repeat the stream. */
const usedLine = /"type":"(?:token_usage_record|(?:function|custom_tool)_call(?:_output)?)"/;

/** Returns the end of the thread's file, or "" if there is none. The operator may have made Codex's directory a symlink. */
async function readRolloutEnd(codexHome: string, thread: string): Promise<string> {
  const root = await realpath(codexHome);
  for (const day of listRolloutDays(thread)) {
    const text = await inDirectory(root, toPathParts(`sessions/${day}`), async (directory) => {
      const name = await findName(directory, `-${thread}.jsonl`);
      return name && (await readEnd(directory, name));
    }).catch((error: unknown) => {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    });
    if (text !== null) return text;
  }
  return "";
}

async function findName(directory: ConfinedDirectory, ending: string): Promise<Buffer | null> {
  for await (const entries of directory.entries(64)) {
    const match = entries.find(({ name }) => name.toString().endsWith(ending));
    if (match !== undefined) return match.name;
  }
  return null;
}

/**
 * Codex stores a thread under its local start date. The id starts with the time in UTC, so this returns the adjacent
 * days too.
 */
export function listRolloutDays(thread: string): string[] {
  const startMs = Number.parseInt(thread.replaceAll("-", "").slice(0, 12), 16);
  if (!Number.isFinite(startMs)) return [];
  const dayMs = 24 * 60 * 60 * 1000;
  return [startMs, startMs - dayMs, startMs + dayMs].map((time) =>
    new Date(time).toISOString().slice(0, 10).replaceAll("-", "/"),
  );
}

/** The agent can write here, so never follow a link or block on something that is not a file. */
async function readEnd(directory: ConfinedDirectory, name: Buffer): Promise<string> {
  const file = await directory.openFile(name);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, maxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
