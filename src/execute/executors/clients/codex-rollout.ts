import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Of a file that is longer the end is read: what is wanted is its last turn. */
const maxBytes = 32 * 1024 * 1024;

/**
 * Codex keeps each thread in a file of its own. What its stream leaves out is in there: what this turn alone used, and
 * calls that its sandbox did not let through. Its lines since the turn began; none where there is no such file.
 */
export async function readRollout(codexHome: string, thread: string | null): Promise<string[]> {
  const end = '{"type":"rollout_end"}';
  if (thread === null) return [end];
  try {
    return [...(await lastTurn(join(codexHome, "sessions"), thread)), end];
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    const message = `What codex has kept of its thread could not be read: ${error.message}`;
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

/** The rest is long and says nothing new. */
const wanted = /"type":"(?:token_usage_record|(?:function|custom_tool)_call(?:_output)?)"/;

async function findRollout(sessions: string, thread: string): Promise<string | null> {
  for (const day of rolloutDays(thread)) {
    const folder = join(sessions, day);
    const name = (await namesIn(folder)).find((each) => each.endsWith(`-${thread}.jsonl`));
    if (name !== undefined) return join(folder, name);
  }
  return null;
}

/** A thread lies in a folder by the day it began, in the time of the machine; its id begins with that moment. */
export function rolloutDays(thread: string): string[] {
  const began = Number.parseInt(thread.replaceAll("-", "").slice(0, 12), 16);
  if (!Number.isFinite(began)) return [];
  const day = 24 * 60 * 60 * 1000;
  return [began, began - day, began + day].map((moment) =>
    new Date(moment).toISOString().slice(0, 10).replaceAll("-", "/"),
  );
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  });
}

/** The agent may have been in there too: nothing is followed, and nothing that is not a file is waited for. */
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
