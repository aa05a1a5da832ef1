import type { Reader, ClientMessage } from "../clients/definition.ts";
import type { EventWriter } from "../clients/event-writer.ts";
import { type Fields, toFields, toText } from "../clients/fields.ts";

/** Logs each message of the SDK in full as it arrives. The first event of a message carries it as `raw`. */
export async function logMessage(message: unknown, reader: Reader, writer: EventWriter): Promise<void> {
  const clientMessages = readMessage(message, reader);
  const isStreamed = toFields(message)["type"] === "stream_event";
  let raw: unknown = message;
  for (const clientMessage of clientMessages)
    if (await writer.write(clientMessage, isStreamed ? undefined : raw)) raw = undefined;
  // Store messages that the reader skips too. Streamed pieces are not stored, because their text follows in full.
  if (raw !== undefined && !isStreamed)
    await writer.write({ type: "system", subtype: toSubtype(toFields(message)) }, raw);
}

function readMessage(message: unknown, reader: Reader): readonly ClientMessage[] {
  const fields = toFields(message);
  if (Array.isArray(message) || typeof fields["type"] !== "string") return [];
  const messages = reader.read(fields) ?? [];
  return fields["type"] === "result" ? [{ type: "system", subtype: "result" }, ...messages] : messages;
}

/** Adds a prefix, so that the name cannot collide with Drover's own subtypes. */
function toSubtype(message: Fields): string {
  const type = toText(message["type"]);
  if (!knownTypes.has(type)) return "unknown_message";
  return `claude_${toText(message["subtype"]) || type}`;
}

const knownTypes = new Set([
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
