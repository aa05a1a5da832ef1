import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

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
    return [...(await readLastTurn(join(codexHome, "sessions"), thread)), endLine];
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const message = `Cannot read codex's file for the thread: ${error.message}`;
    return [JSON.stringify({ type: "error", message }), endLine];
  }
}

async function readLastTurn(sessions: string, thread: string): Promise<string[]> {
  const path = await findRollout(sessions, thread);
  const text = path === null ? "" : await readEnd(path);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const start = lines.findLastIndex((line) => line.includes('"type":"task_started"'));
  return lines.slice(start + 1).filter((line) => usedLine.test(line));
}

/** Other lines are skipped, because they are long and repeat the stream. */
const usedLine = /"type":"(?:token_usage_record|(?:function|custom_tool)_call(?:_output)?)"/;

async function findRollout(sessions: string, thread: string): Promise<string | null> {
  for (const day of rolloutDays(thread)) {
    const directory = join(sessions, day);
    const name = (await listNames(directory)).find((candidate) => candidate.endsWith(`-${thread}.jsonl`));
    if (name !== undefined) return join(directory, name);
  }
  return null;
}

/**
 * Codex stores a thread under its local start date. The id starts with the time in UTC, so this returns the adjacent
 * days too.
 */
export function rolloutDays(thread: string): string[] {
  const startMs = Number.parseInt(thread.replaceAll("-", "").slice(0, 12), 16);
  if (!Number.isFinite(startMs)) return [];
  const dayMs = 24 * 60 * 60 * 1000;
  return [startMs, startMs - dayMs, startMs + dayMs].map((time) =>
    new Date(time).toISOString().slice(0, 10).replaceAll("-", "/"),
  );
}

async function listNames(directory: string): Promise<string[]> {
  return readdir(directory).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
}

/** The agent can write here, so never follow a link or block on something that is not a file. */
async function readEnd(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, maxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
