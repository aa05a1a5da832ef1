import type { Reader, ClientMessage } from "../clients/definition.ts";
import type { EventWriter } from "../clients/event-writer.ts";
import { type Fields, fieldsOf, textOf } from "../clients/fields.ts";

/** Puts each message of the SDK into the log as it arrives, whole: the first event of it carries it as `raw`. */
export async function logMessage(message: unknown, reader: Reader, writer: EventWriter): Promise<void> {
  const said = saidOf(message, reader);
  const isStreamed = fieldsOf(message)["type"] === "stream_event";
  let raw: unknown = message;
  for (const one of said) if (await writer.write(one, isStreamed ? undefined : raw)) raw = undefined;
  // Nothing of it is stored yet, and nothing may be missing but pieces of a text that follows whole.
  if (raw !== undefined && !isStreamed) await writer.write({ type: "system", subtype: nameOf(fieldsOf(message)) }, raw);
}

function saidOf(message: unknown, reader: Reader): readonly ClientMessage[] {
  const fields = fieldsOf(message);
  if (Array.isArray(message) || typeof fields["type"] !== "string") return [];
  const said = reader.read(fields) ?? [];
  return fields["type"] === "result" ? [{ type: "system", subtype: "result" }, ...said] : said;
}

/** Under a name that is none of ours. */
function nameOf(message: Fields): string {
  const type = textOf(message["type"]);
  if (!known.has(type)) return "unknown_message";
  return `claude_${textOf(message["subtype"]) || type}`;
}

const known = new Set([
  "system",
  "assistant",
  "user",
  "result",
  "rate_limit_event",
  "tool_progress",
  "tool_use_summary",
  "auth_status",
  "prompt_suggestion",
  "command_lifecycle",
  "attachment",
]);
