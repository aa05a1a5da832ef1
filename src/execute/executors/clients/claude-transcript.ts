import { toFields } from "./fields.ts";

export type FirstEntries<E> = { ok: true; entries: E[] } | { ok: false; turns: number };

/**
 * Returns the first `turns` turns of a Claude Code transcript. A turn is a prompt and everything up to its answer.
 * If the transcript has fewer turns, returns their number.
 */
export function takeFirstEntries<E>(entries: readonly E[], turns: number): FirstEntries<E> {
  const turnStarts = entries.flatMap((entry, index) => (isPrompt(entry) ? [index] : []));
  if (turnStarts.length < turns) return { ok: false, turns: turnStarts.length };
  let end = turnStarts[turns] ?? entries.length;
  // Claude queues a prompt before it records it, so skip the queue entries of the next prompt.
  if (end < entries.length) while (toFields(entries[end - 1])["type"] === "queue-operation") end -= 1;
  return { ok: true, entries: entries.slice(0, end) };
}

/** Like takeFirstEntries, for the text of a transcript file. Assigns a new session id to the entries. */
export function takeFirstLines(text: string, turns: number, session: string): FirstEntries<string> {
  const entries = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(parseLine);
  const firstTurns = takeFirstEntries(entries, turns);
  if (!firstTurns.ok) return firstTurns;
  const withSession = (entry: Readonly<Record<string, unknown>>) =>
    "sessionId" in entry ? { ...entry, sessionId: session } : entry;
  return { ok: true, entries: firstTurns.entries.map((entry) => JSON.stringify(withSession(entry))) };
}

/**
 * Reports whether this is a prompt from the user. Claude Code records tool results, reminders and summaries as user
 * entries too.
 */
function isPrompt(entry: unknown): boolean {
  const { type, message, isMeta, isSidechain, isCompactSummary } = toFields(entry);
  if (type !== "user" || isMeta === true || isSidechain === true || isCompactSummary === true) return false;
  const { content } = toFields(message);
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ type: "text", text: content }];
  if (parts.some((part) => toFields(part)["type"] === "tool_result")) return false;
  return !parts.some((part) => String(toFields(part)["text"]).startsWith("[Request interrupted by user"));
}

function parseLine(line: string): Readonly<Record<string, unknown>> {
  try {
    return toFields(JSON.parse(line));
  } catch (error) {
    // The last line may be incomplete if the process was killed.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
