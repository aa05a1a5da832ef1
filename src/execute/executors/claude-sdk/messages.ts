import type { Reader, ClientMessage } from "../clients/definition.ts";
import type { EventWriter } from "../clients/event-writer.ts";
import { type Fields, fieldsOf, textOf } from "../clients/fields.ts";

/** Logs each message of the SDK in full as it arrives. The first event of a message carries it as `raw`. */
export async function logMessage(message: unknown, reader: Reader, writer: EventWriter): Promise<void> {
  const read = readMessage(message, reader);
  const isStreamed = fieldsOf(message)["type"] === "stream_event";
  let raw: unknown = message;
  for (const each of read) if (await writer.write(each, isStreamed ? undefined : raw)) raw = undefined;
  // Every message must be stored, except for streamed pieces of a text that follows in full.
  if (raw !== undefined && !isStreamed) await writer.write({ type: "system", subtype: nameOf(fieldsOf(message)) }, raw);
}

function readMessage(message: unknown, reader: Reader): readonly ClientMessage[] {
  const fields = fieldsOf(message);
  if (Array.isArray(message) || typeof fields["type"] !== "string") return [];
  const messages = reader.read(fields) ?? [];
  return fields["type"] === "result" ? [{ type: "system", subtype: "result" }, ...messages] : messages;
}

/** Prefixed so that it cannot collide with Drover's own subtypes. */
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
