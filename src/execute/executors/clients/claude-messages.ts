import { matchesAny } from "../loop/permissions.ts";
import { classifyApiError } from "./api-failure-reason.ts";
import { createUsageMeter } from "./claude-usage.ts";
import type { Conclusion, Reader, ClientMessage } from "./definition.ts";
import { type Fields, toFields, toList, toNumber, toText } from "./fields.ts";

/** Reads Claude's messages. Its `stream-json` lines and the Agent SDK's messages are the same objects. */
export function createClaudeReader(meter = createUsageMeter(), deniedTools: readonly string[] = []): Reader {
  const denials = createDenialTracker();
  /** The last result; null while Claude works. */
  let result: Fields | null = null;

  const readResult = (message: Fields): ClientMessage[] => {
    result = message;
    const usage = meter.addResult(message);
    return [...(usage ? [{ type: "usage" as const, usage }] : []), ...denials.readResult(message)];
  };

  return {
    read(message) {
      switch (message["type"]) {
        case "system":
          if (message["subtype"] === "init") result = null;
          return denials.track(readSystem(message));
        case "assistant":
          // A background subagent may still send messages after the result, and they must not clear it.
          if (typeof message["parent_tool_use_id"] !== "string") result = null;
          return readAssistant(message);
        case "user":
          return denials.track(readUser(message, deniedTools));
        case "stream_event":
          return readStreamEvent(message, meter);
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
      const details = { model, permission_mode: permissionMode, tools, mcp_servers, version: claude_code_version, cwd };
      return [{ type: "session", id: toText(session_id), data: details }];
    }
    case "permission_denied":
      return [
        {
          type: "denied",
          tool_use_id: toText(data["tool_use_id"]),
          tool: toText(data["tool_name"]),
          message: toText(data["message"]),
        },
      ];
    case "status":
      return [];
    default:
      // The prefix keeps the name from colliding with Drover's own subtypes.
      return [{ type: "system", subtype: `claude_${toText(subtype)}`, data }];
  }
}

function readAssistant(message: Fields): ClientMessage[] {
  const blocks = toList(toFields(message["message"])["content"]).map(toFields);
  const parent = message["parent_tool_use_id"];
  return blocks.flatMap((block): ClientMessage[] => {
    switch (block["type"]) {
      case "text":
        if (message["is_api_error_message"] === true || message["error"] !== undefined)
          return [{ type: "error", code: toText(message["error"]), message: toText(block["text"]) }];
        // A subagent's text must not be logged as the agent's answer.
        if (typeof parent === "string")
          return [{ type: "system", subtype: "claude_subagent_text", data: { parent, text: toText(block["text"]) } }];
        return [{ type: "assistant", text: toText(block["text"]) }];
      case "tool_use":
      case "server_tool_use":
        return [
          { type: "tool_use", tool_use_id: toText(block["id"]), name: toText(block["name"]), input: block["input"] },
        ];
      case "thinking":
        return [{ type: "system", subtype: "thinking", data: { text: toText(block["thinking"]) } }];
      default:
        return [{ type: "system", subtype: "claude_block", data: block }];
    }
  });
}

function readUser(message: Fields, deniedTools: readonly string[]): ClientMessage[] {
  const content = toFields(message["message"])["content"];
  const results = toList(content)
    .map(toFields)
    .filter((block) => block["type"] === "tool_result");
  return results.flatMap((block): ClientMessage[] => {
    const tool_use_id = toText(block["tool_use_id"]);
    const is_error = block["is_error"] === true;
    const output = toOutput(block["content"]);
    const result: ClientMessage = { type: "tool_result", tool_use_id, is_error, output };
    const tool = is_error && typeof output === "string" ? findDeniedTool(output, deniedTools) : undefined;
    return tool === undefined ? [result] : [{ type: "denied", tool_use_id, tool, message: toText(output) }, result];
  });
}

/**
 * Returns the tool's name if a call failed because the tool is in denied_tools. Claude reports such a tool as unknown.
 * Claude gives the reason only for built-in tools, so MCP tools are matched against the agent's list.
 */
function findDeniedTool(output: string, deniedTools: readonly string[]): string | undefined {
  const tool = /\bNo such tool available: ([\w-]+)/.exec(output)?.[1];
  if (tool === undefined || output.includes(`${tool} is disabled for this session`)) return tool;
  return matchesAny(tool, [...deniedTools, ...deniedTools.map((name) => `${name}__*`)]) ? tool : undefined;
}

/** Keeps text. Of other content, such as images, keeps only the type. */
function toOutput(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? "";
  const blocks = content.map(toFields);
  if (blocks.every((block) => block["type"] === "text")) return blocks.map((block) => toText(block["text"])).join("\n");
  return blocks.map((block) =>
    block["type"] === "text" ? block : { type: block["type"], media_type: toFields(block["source"])["media_type"] },
  );
}

function readStreamEvent(message: Fields, meter: ReturnType<typeof createUsageMeter>): ClientMessage[] {
  const event = toFields(message["event"]);
  const usage = meter.addEvent(event);
  if (usage) return [{ type: "usage", usage }];
  const delta = toFields(event["delta"]);
  const isAnswer = event["type"] === "content_block_delta" && delta["type"] === "text_delta";
  if (!isAnswer || typeof message["parent_tool_use_id"] === "string") return [];
  return [{ type: "partial", text: toText(delta["text"]) }];
}

/** Finds denials that older versions of Claude report only in the result. They count if no later call succeeded. */
function createDenialTracker() {
  const reportedCalls = new Set<string>();
  let failedCalls = new Set<string>();
  return {
    track(messages: ClientMessage[]): ClientMessage[] {
      for (const message of messages) {
        if (message.type === "denied") reportedCalls.add(message.tool_use_id);
        else if (message.type === "tool_result" && message.is_error) failedCalls.add(message.tool_use_id);
        else if (message.type === "tool_result") failedCalls = new Set();
      }
      return messages;
    },
    readResult(message: Fields): ClientMessage[] {
      return toList(message["permission_denials"])
        .map(toFields)
        .map((denial) => ({ id: toText(denial["tool_use_id"]), tool: toText(denial["tool_name"]) }))
        .filter(({ id }) => !reportedCalls.has(id) && failedCalls.has(id))
        .map(({ id, tool }) => ({ type: "denied", tool_use_id: id, tool }));
    },
  };
}

function concludeResult(result: Fields): Conclusion {
  const text = typeof result["result"] === "string" ? result["result"] : null;
  const errors = toList(result["errors"]).map(toText).join("; ");
  const message = errors || text || "claude failed without an error message.";
  switch (result["subtype"]) {
    case "success":
      if (result["is_error"] !== true) return concludeRefusal(result) ?? { ok: true, text };
      // Claude reports API errors with the subtype "success" too.
      return { ok: false, reason: classifyApiError(toNumber(result["api_error_status"]), message), message };
    case "error_max_turns":
      return { ok: false, reason: "max_turns", message: `${message}. Raise max_turns, or ask for less in one run.` };
    case "error_max_budget_usd":
      return { ok: false, reason: "budget_exceeded", message: `${message}. Raise budget.cost_usd, or ask for less.` };
    case "error_max_structured_output_retries":
      return { ok: false, reason: "invalid_output", message };
    default:
      return sessionNotFound(message) ?? { ok: false, reason: "provider_invalid_response", message };
  }
}

/** Claude reports a refused or truncated answer as a success. */
function concludeRefusal(result: Fields): Conclusion | null {
  const text = toText(result["result"]);
  if (result["stop_reason"] === "refusal")
    return { ok: false, reason: "refused", message: "The model refused to answer.", text };
  if (result["stop_reason"] !== "max_tokens") return null;
  const message = "The answer was cut off at the model's output token limit.";
  return { ok: false, reason: "provider_invalid_response", message, text };
}

/** Recognizes a failure that happened before Claude printed any message. */
function concludeStderr(stderr: string): Conclusion | null {
  if (/invalid api key|please run \/login|not logged in/i.test(stderr))
    return { ok: false, reason: "provider_auth", message: stderr.slice(0, 500) };
  return sessionNotFound(stderr);
}

function sessionNotFound(message: string): Conclusion | null {
  if (!/No conversation found with session ID|requires a valid session ID/i.test(message)) return null;
  return {
    ok: false,
    reason: "session_not_found",
    message: `${message.slice(0, 300)}. claude keeps conversations in its HOME, and this one is no longer there. Start a new run.`,
  };
}
