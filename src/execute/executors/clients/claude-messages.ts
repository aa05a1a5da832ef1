import { matchesAny } from "../loop/permissions.ts";
import { apiFailureReason } from "./api-failure-reason.ts";
import { createUsageMeter } from "./claude-usage.ts";
import type { Conclusion, Reader, ClientMessage } from "./definition.ts";
import { type Fields, fieldsOf, listOf, numberOf, textOf } from "./fields.ts";

/** Reads Claude's messages. Its `stream-json` lines and the Agent SDK's messages are the same objects. */
export function createClaudeReader(steps = createUsageMeter(), deniedTools: readonly string[] = []): Reader {
  const denials = createDenials();
  /** The last result, cleared when Claude starts working again. */
  let result: Fields | null = null;

  const readResult = (message: Fields): ClientMessage[] => {
    result = message;
    const usage = steps.ofResult(message);
    return [...(usage ? [{ type: "usage" as const, usage }] : []), ...denials.ofResult(message)];
  };

  return {
    read(message) {
      switch (message["type"]) {
        case "system":
          if (message["subtype"] === "init") result = null;
          return denials.track(readSystem(message));
        case "assistant":
          // messages from a subagent still running in the background do not clear the result
          if (typeof message["parent_tool_use_id"] !== "string") result = null;
          return readAssistant(message);
        case "user":
          return denials.track(readUser(message, deniedTools));
        case "stream_event":
          return readStreamEvent(message, steps);
        case "result":
          return readResult(message);
        default:
          return null;
      }
    },
    conclude: ({ stderr }) => (result ? concludeResult(result) : concludeStderr(stderr)),
  };
}

function readSystem(message: Fields): ClientMessage[] {
  const { type: _type, subtype, uuid: _uuid, session_id, ...data } = message;
  switch (subtype) {
    case "init": {
      const { model, permissionMode, tools, mcp_servers, claude_code_version, cwd } = data;
      const about = { model, permission_mode: permissionMode, tools, mcp_servers, version: claude_code_version, cwd };
      return [{ type: "session", id: textOf(session_id), data: about }];
    }
    case "permission_denied":
      return [
        {
          type: "denied",
          tool_use_id: textOf(data["tool_use_id"]),
          tool: textOf(data["tool_name"]),
          message: textOf(data["message"]),
        },
      ];
    case "status":
      return [];
    default:
      // prefixed so that it cannot collide with Drover's own subtypes
      return [{ type: "system", subtype: `claude_${textOf(subtype)}`, data }];
  }
}

function readAssistant(message: Fields): ClientMessage[] {
  const blocks = listOf(fieldsOf(message["message"])["content"]).map(fieldsOf);
  const parent = message["parent_tool_use_id"];
  return blocks.flatMap((block): ClientMessage[] => {
    switch (block["type"]) {
      case "text":
        if (message["is_api_error_message"] === true || message["error"] !== undefined)
          return [{ type: "error", code: textOf(message["error"]), message: textOf(block["text"]) }];
        // a subagent's text is not the agent's answer
        if (typeof parent === "string")
          return [{ type: "system", subtype: "claude_subagent_text", data: { parent, text: textOf(block["text"]) } }];
        return [{ type: "assistant", text: textOf(block["text"]) }];
      case "tool_use":
      case "server_tool_use":
        return [
          { type: "tool_use", tool_use_id: textOf(block["id"]), name: textOf(block["name"]), input: block["input"] },
        ];
      case "thinking":
        return [{ type: "system", subtype: "thinking", data: { text: textOf(block["thinking"]) } }];
      default:
        return [{ type: "system", subtype: "claude_block", data: block }];
    }
  });
}

function readUser(message: Fields, deniedTools: readonly string[]): ClientMessage[] {
  const content = fieldsOf(message["message"])["content"];
  const results = listOf(content)
    .map(fieldsOf)
    .filter((block) => block["type"] === "tool_result");
  return results.flatMap((block): ClientMessage[] => {
    const tool_use_id = textOf(block["tool_use_id"]);
    const is_error = block["is_error"] === true;
    const output = outputOf(block["content"]);
    const result: ClientMessage = { type: "tool_result", tool_use_id, is_error, output };
    const tool = is_error && typeof output === "string" ? takenAway(output, deniedTools) : undefined;
    return tool === undefined ? [result] : [{ type: "denied", tool_use_id, tool, message: textOf(output) }, result];
  });
}

/**
 * Counts a call of a tool in denied_tools as denied. Claude reports it as an unknown tool, and names the reason only
 * for its built-in tools, so MCP tools are matched against the agent's list.
 */
function takenAway(output: string, deniedTools: readonly string[]): string | undefined {
  const tool = /\bNo such tool available: ([\w-]+)/.exec(output)?.[1];
  if (tool === undefined || output.includes(`${tool} is disabled for this session`)) return tool;
  return matchesAny(tool, [...deniedTools, ...deniedTools.map((name) => `${name}__*`)]) ? tool : undefined;
}

/** Returns text as text. For other content, such as images, returns only the type. */
function outputOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? "";
  const blocks = content.map(fieldsOf);
  if (blocks.every((block) => block["type"] === "text")) return blocks.map((block) => textOf(block["text"])).join("\n");
  return blocks.map((block) =>
    block["type"] === "text" ? block : { type: block["type"], media_type: fieldsOf(block["source"])["media_type"] },
  );
}

function readStreamEvent(message: Fields, steps: ReturnType<typeof createUsageMeter>): ClientMessage[] {
  const event = fieldsOf(message["event"]);
  const used = steps.ofEvent(event);
  if (used) return [{ type: "usage", usage: used }];
  const delta = fieldsOf(event["delta"]);
  const isAnswer = event["type"] === "content_block_delta" && delta["type"] === "text_delta";
  if (!isAnswer || typeof message["parent_tool_use_id"] === "string") return [];
  return [{ type: "partial", text: textOf(delta["text"]) }];
}

/** Older versions report a denial only in the result. It counts if the call failed and no later call succeeded. */
function createDenials() {
  const reported = new Set<string>();
  let failedSince = new Set<string>();
  return {
    track(messages: ClientMessage[]): ClientMessage[] {
      for (const message of messages) {
        if (message.type === "denied") reported.add(message.tool_use_id);
        else if (message.type === "tool_result" && message.is_error) failedSince.add(message.tool_use_id);
        else if (message.type === "tool_result") failedSince = new Set();
      }
      return messages;
    },
    ofResult(message: Fields): ClientMessage[] {
      return listOf(message["permission_denials"])
        .map(fieldsOf)
        .map((denial) => ({ id: textOf(denial["tool_use_id"]), tool: textOf(denial["tool_name"]) }))
        .filter(({ id }) => !reported.has(id) && failedSince.has(id))
        .map(({ id, tool }) => ({ type: "denied", tool_use_id: id, tool }));
    },
  };
}

function concludeResult(result: Fields): Conclusion {
  const text = typeof result["result"] === "string" ? result["result"] : null;
  const faults = listOf(result["errors"]).map(textOf).join("; ");
  const message = faults || text || "claude failed without an error message.";
  switch (result["subtype"]) {
    case "success":
      if (result["is_error"] !== true) return refusalOf(result) ?? { ok: true, text };
      // API errors also arrive as "success"
      return { ok: false, reason: apiFailureReason(numberOf(result["api_error_status"]), message), message };
    case "error_max_turns":
      return { ok: false, reason: "max_turns", message: `${message}. Raise max_turns, or ask for less at once.` };
    case "error_max_budget_usd":
      return { ok: false, reason: "budget_exceeded", message: `${message}. Raise budget.cost_usd, or ask for less.` };
    case "error_max_structured_output_retries":
      return { ok: false, reason: "invalid_output", message };
    default:
      return noSession(message) ?? { ok: false, reason: "provider_invalid_response", message };
  }
}

/** Claude reports a refused or truncated answer as a success. */
function refusalOf(result: Fields): Conclusion | null {
  const text = textOf(result["result"]);
  if (result["stop_reason"] === "refusal")
    return { ok: false, reason: "refused", message: "The model refused to answer.", text };
  if (result["stop_reason"] !== "max_tokens") return null;
  const message = "The answer was cut off at the model's limit of output tokens.";
  return { ok: false, reason: "provider_invalid_response", message, text };
}

/** Handles failures before Claude prints any message. */
function concludeStderr(stderr: string): Conclusion | null {
  if (/invalid api key|please run \/login|not logged in/i.test(stderr))
    return { ok: false, reason: "provider_auth", message: stderr.slice(0, 500) };
  return noSession(stderr);
}

function noSession(message: string): Conclusion | null {
  if (!/No conversation found with session ID|requires a valid session ID/i.test(message)) return null;
  return {
    ok: false,
    reason: "session_not_found",
    message: `${message.slice(0, 300)}. claude keeps conversations in its HOME, and this one is no longer there. Start a new run.`,
  };
}
