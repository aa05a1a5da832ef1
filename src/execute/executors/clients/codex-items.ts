import type { ClientMessage } from "./definition.ts";
import { type Fields, toFields, toList, toText } from "./fields.ts";

type ToolUse = Extract<ClientMessage, { type: "tool_use" }>;
type ToolResult = Extract<ClientMessage, { type: "tool_result" }>;

/** Converts a codex item to a tool call; returns null for other items. */
export function toToolUse(item: Fields): ToolUse | null {
  const tool_use_id = toText(item["id"]);
  const use = (name: string, input: unknown): ToolUse => ({ type: "tool_use", tool_use_id, name, input });
  switch (item["type"]) {
    case "command_execution":
      return use("command_execution", { command: item["command"] });
    case "file_change":
      return use("file_change", { changes: toList(item["changes"]) });
    case "mcp_tool_call":
      return use(`${toText(item["server"])}.${toText(item["tool"])}`, item["arguments"] ?? {});
    case "web_search":
      return use("web_search", { query: item["query"] });
    case "todo_list":
      return use("todo_list", { items: toList(item["items"]) });
    default:
      return null;
  }
}

/**
 * Converts a completed item to a tool result. `denied` is the reason if the sandbox blocked the call or codex declined
 * it.
 */
export function toToolResult(item: Fields): { result: ToolResult; denied: string | null } {
  const output = toText(item["aggregated_output"]);
  const exit = item["exit_code"];
  const is_error = ["failed", "declined"].includes(toText(item["status"])) || (typeof exit === "number" && exit !== 0);
  const result = (value: unknown): ToolResult => ({
    type: "tool_result",
    tool_use_id: toText(item["id"]),
    is_error,
    output: value,
  });
  if (item["type"] === "command_execution") {
    const denied = is_error && /Read-only file system/i.test(output) ? output.trim().slice(0, 500) : null;
    return { result: result({ exit_code: exit ?? null, output }), denied };
  }
  if (item["type"] === "mcp_tool_call")
    return { result: result(item["error"] ?? toFields(item["result"])["content"] ?? null), denied: null };
  const denied = item["status"] === "declined" ? "Codex declined this call." : null;
  return { result: result(item["status"] ?? "completed"), denied };
}
