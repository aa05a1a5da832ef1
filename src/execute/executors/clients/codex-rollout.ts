import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Of a longer file, only the end is read: the last turn is there. */
const maxBytes = 32 * 1024 * 1024;

/**
 * Returns the lines of the last turn from the thread's file, or none if there is no file. They hold what the stream
 * omits: the usage of this turn alone, and calls that the sandbox blocked.
 */
export async function readRollout(codexHome: string, thread: string | null): Promise<string[]> {
  const end = '{"type":"rollout_end"}';
  if (thread === null) return [end];
  try {
    return [...(await lastTurn(join(codexHome, "sessions"), thread)), end];
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const message = `Cannot read codex's file of the thread: ${error.message}`;
    return [JSON.stringify({ type: "error", message }), end];
  }
}

async function lastTurn(sessions: string, thread: string): Promise<string[]> {
  const path = await findRollout(sessions, thread);
  const text = path === null ? "" : await readEnd(path);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const began = lines.findLastIndex((line) => line.includes('"type":"task_started"'));
  return lines.slice(began + 1).filter((line) => wanted.test(line));
}

/** The other lines are long and repeat the stream. */
const wanted = /"type":"(?:token_usage_record|(?:function|custom_tool)_call(?:_output)?)"/;

async function findRollout(sessions: string, thread: string): Promise<string | null> {
  for (const day of rolloutDays(thread)) {
    const directory = join(sessions, day);
    const name = (await namesIn(directory)).find((each) => each.endsWith(`-${thread}.jsonl`));
    if (name !== undefined) return join(directory, name);
  }
  return null;
}

/** Codex files a thread under its local start date. The id begins with the start time in UTC, so try the adjacent days too. */
export function rolloutDays(thread: string): string[] {
  const began = Number.parseInt(thread.replaceAll("-", "").slice(0, 12), 16);
  if (!Number.isFinite(began)) return [];
  const day = 24 * 60 * 60 * 1000;
  return [began, began - day, began + day].map((moment) =>
    new Date(moment).toISOString().slice(0, 10).replaceAll("-", "/"),
  );
}

async function namesIn(directory: string): Promise<string[]> {
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
