import { fieldsOf } from "./fields.ts";

export type FirstEntries<E> = { ok: true; entries: E[] } | { ok: false; turns: number };

/**
 * The beginning of a transcript of Claude Code: so many prompts of the user, each with everything up to the answer to it.
 * `turns` is how many there are, where that is fewer.
 */
export function firstEntries<E>(entries: readonly E[], turns: number): FirstEntries<E> {
  const starts = entries.flatMap((entry, at) => (isPrompt(entry) ? [at] : []));
  if (starts.length < turns) return { ok: false, turns: starts.length };
  let end = starts[turns] ?? entries.length;
  // a prompt is announced before it is taken
  if (end < entries.length) while (fieldsOf(entries[end - 1])["type"] === "queue-operation") end -= 1;
  return { ok: true, entries: entries.slice(0, end) };
}

/** The same of a transcript as it lies in its file, under another id of the session. */
export function firstLines(text: string, turns: number, session: string): FirstEntries<string> {
  const entries = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(parsed);
  const kept = firstEntries(entries, turns);
  if (!kept.ok) return kept;
  const renamed = (entry: Readonly<Record<string, unknown>>) =>
    "sessionId" in entry ? { ...entry, sessionId: session } : entry;
  return { ok: true, entries: kept.entries.map((entry) => JSON.stringify(renamed(entry))) };
}

/** What the user said, and not what Claude Code says in the user's name: results of tools, reminders, summaries. */
function isPrompt(entry: unknown): boolean {
  const { type, message, isMeta, isSidechain, isCompactSummary } = fieldsOf(entry);
  if (type !== "user" || isMeta === true || isSidechain === true || isCompactSummary === true) return false;
  const { content } = fieldsOf(message);
  const parts: readonly unknown[] = Array.isArray(content) ? content : [{ type: "text", text: content }];
  if (parts.some((part) => fieldsOf(part)["type"] === "tool_result")) return false;
  return !parts.some((part) => String(fieldsOf(part)["text"]).startsWith("[Request interrupted by user"));
}

function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(line));
  } catch (error) {
    // the last one, of a process that was killed
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
