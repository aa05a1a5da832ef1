import { matchesAny } from "../loop/permissions.ts";
import { reasonOfApiFault } from "./api-failure.ts";
import { createUsageSteps } from "./claude-usage.ts";
import type { Conclusion, Reader, Said } from "./definition.ts";
import { type Fields, fieldsOf, listOf, numberOf, textOf } from "./fields.ts";

/** What claude says: lines of its `stream-json` output and messages of the Agent SDK are the same objects. */
export function createClaudeReader(steps = createUsageSteps(), deniedTools: readonly string[] = []): Reader {
  const denials = createDenials();
  /** Until it goes on to work. */
  let result: Fields | null = null;

  const readResult = (message: Fields): Said[] => {
    result = message;
    const usage = steps.ofResult(message);
    return [...(usage ? [{ type: "usage" as const, usage }] : []), ...denials.ofResult(message)];
  };

  return {
    read(message) {
      switch (message["type"]) {
        case "system":
          if (message["subtype"] === "init") result = null;
          return denials.note(readSystem(message));
        case "assistant":
          // a helper that it has left running does not undo its result
          if (typeof message["parent_tool_use_id"] !== "string") result = null;
          return readAssistant(message);
        case "user":
          return denials.note(readUser(message, deniedTools));
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

function readSystem(message: Fields): Said[] {
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
      // under a name that is none of ours
      return [{ type: "system", subtype: `claude_${textOf(subtype)}`, data }];
  }
}

function readAssistant(message: Fields): Said[] {
  const blocks = listOf(fieldsOf(message["message"])["content"]).map(fieldsOf);
  const parent = message["parent_tool_use_id"];
  return blocks.flatMap((block): Said[] => {
    switch (block["type"]) {
      case "text":
        if (message["is_api_error_message"] === true || message["error"] !== undefined)
          return [{ type: "error", code: textOf(message["error"]), message: textOf(block["text"]) }];
        // what a helper of the agent says is not its answer
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

function readUser(message: Fields, deniedTools: readonly string[]): Said[] {
  const content = fieldsOf(message["message"])["content"];
  const results = listOf(content)
    .map(fieldsOf)
    .filter((block) => block["type"] === "tool_result");
  return results.flatMap((block): Said[] => {
    const tool_use_id = textOf(block["tool_use_id"]);
    const is_error = block["is_error"] === true;
    const output = outputOf(block["content"]);
    const result: Said = { type: "tool_result", tool_use_id, is_error, output };
    const tool = is_error && typeof output === "string" ? takenAway(output, deniedTools) : undefined;
    return tool === undefined ? [result] : [{ type: "denied", tool_use_id, tool, message: textOf(output) }, result];
  });
}

/**
 * A tool that the agent's denied_tools took away counts as denied; claude itself calls that a tool which is not there.
 * Only of its own tools it adds why; those of MCP servers are known by the agent's list.
 */
function takenAway(output: string, deniedTools: readonly string[]): string | undefined {
  const tool = /\bNo such tool available: ([\w-]+)/.exec(output)?.[1];
  if (tool === undefined || output.includes(`${tool} is disabled for this session`)) return tool;
  return matchesAny(tool, [...deniedTools, ...deniedTools.map((name) => `${name}__*`)]) ? tool : undefined;
}

/** Text as text; of anything else (pictures) only what it is. */
function outputOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? "";
  const blocks = content.map(fieldsOf);
  if (blocks.every((block) => block["type"] === "text")) return blocks.map((block) => textOf(block["text"])).join("\n");
  return blocks.map((block) =>
    block["type"] === "text" ? block : { type: block["type"], media_type: fieldsOf(block["source"])["media_type"] },
  );
}

function readStreamEvent(message: Fields, steps: ReturnType<typeof createUsageSteps>): Said[] {
  const event = fieldsOf(message["event"]);
  const used = steps.ofEvent(event);
  if (used) return [{ type: "usage", usage: used }];
  const delta = fieldsOf(event["delta"]);
  const isAnswer = event["type"] === "content_block_delta" && delta["type"] === "text_delta";
  if (!isAnswer || typeof message["parent_tool_use_id"] === "string") return [];
  return [{ type: "partial", text: textOf(delta["text"]) }];
}

/** Older versions tell of a denial only in the result: what was denied there, and failed with no success after it. */
function createDenials() {
  const told = new Set<string>();
  let failedSince = new Set<string>();
  return {
    note(said: Said[]): Said[] {
      for (const one of said) {
        if (one.type === "denied") told.add(one.tool_use_id);
        else if (one.type === "tool_result" && one.is_error) failedSince.add(one.tool_use_id);
        else if (one.type === "tool_result") failedSince = new Set();
      }
      return said;
    },
    ofResult(message: Fields): Said[] {
      return listOf(message["permission_denials"])
        .map(fieldsOf)
        .map((denial) => ({ id: textOf(denial["tool_use_id"]), tool: textOf(denial["tool_name"]) }))
        .filter(({ id }) => !told.has(id) && failedSince.has(id))
        .map(({ id, tool }) => ({ type: "denied", tool_use_id: id, tool }));
    },
  };
}

function concludeResult(result: Fields): Conclusion {
  const text = typeof result["result"] === "string" ? result["result"] : null;
  const faults = listOf(result["errors"]).map(textOf).join("; ");
  const message = faults || text || "claude ended with an error and did not say which.";
  switch (result["subtype"]) {
    case "success":
      if (result["is_error"] !== true) return refusalOf(result) ?? { ok: true, text };
      // a fault of the model's service comes under this name as well
      return { ok: false, reason: reasonOfApiFault(numberOf(result["api_error_status"]), message), message };
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

/** The service refused to answer, or cut the answer off: neither is a success, whatever the result is called. */
function refusalOf(result: Fields): Conclusion | null {
  const text = textOf(result["result"]);
  if (result["stop_reason"] === "refusal")
    return { ok: false, reason: "refused", message: "The model's service refused to answer.", text };
  if (result["stop_reason"] !== "max_tokens") return null;
  const message = "The answer was cut off at the model's limit of output tokens.";
  return { ok: false, reason: "provider_invalid_response", message, text };
}

/** It ends so where it cannot even begin. */
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
    message: `${message.slice(0, 300)}. claude keeps conversations under its HOME; this one is not there any more. Start a new run.`,
  };
}
