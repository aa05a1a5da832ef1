import { randomFillSync } from "node:crypto";
import { createIds } from "../../../model/ids.ts";
import type { ConversationFile, CutConversation } from "./definition.ts";
import { fieldsOf } from "./fields.ts";

const newThread = createIds(Date.now, (bytes) => void randomFillSync(bytes));

interface Line {
  text: string;
  fields: Readonly<Record<string, unknown>>;
}

/**
 * Cuts a conversation after its first turns. The file of a forked thread continues another thread's file from a given
 * line. The cut replaces only the file with the last kept turn, and keeps its reference to the earlier files.
 */
export function firstRolloutTurns(files: readonly ConversationFile[], turns: number): CutConversation {
  const own = files.map(({ bytes }) => linesOf(bytes));
  let counted = 0;
  for (let at = own.length - 1; at >= 0; at -= 1) {
    const lines = own[at]!.slice(0, endOf(own[at]!, own[at - 1]));
    const starts = lines.flatMap(({ fields }, index) => (isStart(fields) ? [index] : []));
    // lines before the first turn belong to the file they are in
    if (counted + starts.length >= turns) {
      let end = starts[turns - counted] ?? lines.length;
      if (end < lines.length) while (isSettings(lines[end - 1]?.fields)) end -= 1;
      return { ok: true, ...renamed(lines.slice(0, end), new Date()) };
    }
    counted += starts.length;
  }
  return { ok: false, turns: counted };
}

/** Returns the line at which the fork left this file. */
function endOf(lines: readonly Line[], fork: readonly Line[] | undefined): number {
  const before = fieldsOf(fork?.[0]?.fields["payload"])["forked_from_ordinal_exclusive"];
  if (typeof before !== "number") return lines.length;
  const end = lines.findIndex(({ fields }) => typeof fields["ordinal"] === "number" && fields["ordinal"] >= before);
  return end < 0 ? lines.length : end;
}

const isStart = (fields: Line["fields"]): boolean => fieldsOf(fields["payload"])["type"] === "task_started";
const isSettings = (fields: Line["fields"] | undefined): boolean =>
  fieldsOf(fields?.["payload"])["type"] === "thread_settings_applied";

function renamed([first, ...rest]: readonly Line[], now: Date): { session: string; file: ConversationFile } {
  const session = newThread();
  const meta = { ...fieldsOf(first?.fields["payload"]), id: session, session_id: session };
  const lines = [JSON.stringify({ ...first?.fields, payload: meta }), ...rest.map(({ text }) => text)];
  const time = now.toISOString().slice(0, 19).replaceAll(":", "-");
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  return { session, file: { name: `rollout-${time}-${session}.jsonl`, bytes } };
}

function linesOf(bytes: Uint8Array): Line[] {
  const texts = Buffer.from(bytes)
    .toString("utf8")
    .split("\n")
    .filter((text) => text.trim() !== "");
  return texts.flatMap((text): Line[] => {
    try {
      return [{ text, fields: fieldsOf(JSON.parse(text)) }];
    } catch (error) {
      // the last line may be incomplete if the process was killed
      if (error instanceof SyntaxError) return [];
      throw error;
    }
  });
}
