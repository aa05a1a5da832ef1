import { randomFillSync } from "node:crypto";
import { createIds } from "../../../model/ids.ts";
import type { ConversationFile, CutConversation } from "./definition.ts";
import { toFields } from "./fields.ts";

const createThreadId = createIds(Date.now, (bytes) => void randomFillSync(bytes));

interface Line {
  text: string;
  fields: Readonly<Record<string, unknown>>;
}

/**
 * Cuts a conversation after its first turns. The file of a forked thread continues another thread's file from a given
 * line. Only the file with the last kept turn is replaced; it still refers to the earlier files.
 */
export function takeFirstRolloutTurns(files: readonly ConversationFile[], turns: number): CutConversation {
  const fileLines = files.map(({ bytes }) => parseLines(bytes));
  let earlierTurns = 0;
  for (let index = fileLines.length - 1; index >= 0; index -= 1) {
    const lines = fileLines[index]!.slice(0, findForkLine(fileLines[index]!, fileLines[index - 1]));
    const turnStarts = lines.flatMap(({ fields }, line) => (isStart(fields) ? [line] : []));
    if (earlierTurns + turnStarts.length >= turns) {
      // Without a next turn, keep the rest of the file.
      let end = turnStarts[turns - earlierTurns] ?? lines.length;
      if (end < lines.length) while (isSettings(lines[end - 1]?.fields)) end -= 1;
      return { ok: true, ...toNewThread(lines.slice(0, end), new Date()) };
    }
    earlierTurns += turnStarts.length;
  }
  return { ok: false, turns: earlierTurns };
}

/** Returns the line at which the fork left this file. */
function findForkLine(lines: readonly Line[], fork: readonly Line[] | undefined): number {
  const forkOrdinal = toFields(fork?.[0]?.fields["payload"])["forked_from_ordinal_exclusive"];
  if (typeof forkOrdinal !== "number") return lines.length;
  const end = lines.findIndex(
    ({ fields }) => typeof fields["ordinal"] === "number" && fields["ordinal"] >= forkOrdinal,
  );
  return end < 0 ? lines.length : end;
}

const isStart = (fields: Line["fields"]): boolean => toFields(fields["payload"])["type"] === "task_started";
const isSettings = (fields: Line["fields"] | undefined): boolean =>
  toFields(fields?.["payload"])["type"] === "thread_settings_applied";

function toNewThread([first, ...rest]: readonly Line[], now: Date): { session: string; file: ConversationFile } {
  const session = createThreadId();
  const meta = { ...toFields(first?.fields["payload"]), id: session, session_id: session };
  const lines = [JSON.stringify({ ...first?.fields, payload: meta }), ...rest.map(({ text }) => text)];
  const time = now.toISOString().slice(0, 19).replaceAll(":", "-");
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  return { session, file: { name: `rollout-${time}-${session}.jsonl`, bytes } };
}

function parseLines(bytes: Uint8Array): Line[] {
  const texts = Buffer.from(bytes)
    .toString("utf8")
    .split("\n")
    .filter((text) => text.trim() !== "");
  return texts.flatMap((text): Line[] => {
    try {
      return [{ text, fields: toFields(JSON.parse(text)) }];
    } catch (error) {
      // The last line may be incomplete if the process was killed.
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}
