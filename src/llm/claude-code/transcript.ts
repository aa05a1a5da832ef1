import { randomUUID } from "node:crypto";
import type { Message, Part } from "../conversation.ts";

/** The prefix that Claude Code gives to the tools of a server. */
const prefix = "mcp__drover__";
export const toWireName = (name: string): string => name.replaceAll(".", "_");
export const toFullName = (name: string): string => (name.startsWith(prefix) ? name : `${prefix}${toWireName(name)}`);

/**
 * Sent if a new process finds the results of its calls in its history, because it makes no request without a message.
 */
export const continuation = "The results of your tool calls are above. Continue.";

/** Converts a conversation to the lines of a Claude Code transcript, so that Claude Code can resume it. */
export function toTranscript(session_id: string, messages: readonly Message[], cwd: string): { type: string }[] {
  const timestamp = new Date().toISOString();
  let parentUuid: string | null = null;
  return messages.map((message) => {
    const uuid = randomUUID();
    const entry = {
      type: message.role === "assistant" ? "assistant" : "user",
      uuid,
      parentUuid,
      sessionId: session_id,
      timestamp,
      cwd,
      isSidechain: false,
      userType: "external",
      message: toWireMessage(message),
    };
    parentUuid = uuid;
    return entry;
  });
}

function toWireMessage(message: Message) {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.text };
    case "assistant":
      return {
        role: "assistant",
        type: "message",
        id: `msg_${randomUUID()}`,
        model: "unknown",
        content: message.parts.flatMap(toWirePart),
        stop_reason: message.parts.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 0, output_tokens: 0 },
      };
    case "tool":
      return {
        role: "user",
        content: message.results.map(({ tool_use_id, output, is_error }) => ({
          type: "tool_result",
          tool_use_id,
          content: output,
          is_error,
        })),
      };
  }
}

function toWirePart(part: Part): unknown[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ type: "text", text: part.text }];
    case "tool_use": {
      const input = part.fault === undefined ? part.input : {};
      return [{ type: "tool_use", id: part.tool_use_id, name: toFullName(part.name), input }];
    }
    case "reasoning": {
      const { signature, redactedData } = readReasoningMeta(part);
      if (redactedData !== undefined) return [{ type: "redacted_thinking", data: redactedData }];
      // The service rejects a thinking block without its signature.
      return signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature }];
    }
  }
}

/** Uses the metadata format of the provider `anthropic`, so that a session can switch between the two. */
function readReasoningMeta({ meta }: Part): { signature?: string; redactedData?: string } {
  const anthropicMeta: unknown = typeof meta === "object" && meta !== null ? Reflect.get(meta, "anthropic") : undefined;
  return typeof anthropicMeta === "object" && anthropicMeta !== null ? anthropicMeta : {};
}
