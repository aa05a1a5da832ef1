import type { ClientMessage } from "./definition.ts";
import { type Fields, fieldsOf, textOf } from "./fields.ts";

type Denied = Extract<ClientMessage, { type: "denied" }>;

/** Finds tool calls that codex's sandbox blocked. Codex omits them from its stream but records them in the thread's file. */
export interface HiddenCalls {
  /** Records an item that appeared in the stream. */
  shown(item: Fields): void;
  /** Reads the next line of the thread's file. */
  read(payload: Fields): readonly ClientMessage[];
  /** Returns the last denial if no later call succeeded. */
  end(): readonly Denied[];
}

export function createHiddenCalls(): HiddenCalls {
  const commands: string[] = [];
  const calls = new Map<string, { name: string; input: unknown }>();
  let denied: Denied | null = null;

  const isShown = (input: unknown): boolean => {
    const command = withoutQuotes(textOf(fieldsOf(input)["cmd"]));
    const at = command === "" ? -1 : commands.findIndex((each) => each.endsWith(command));
    if (at >= 0) commands.splice(at, 1);
    return at >= 0;
  };

  return {
    shown(item) {
      if (item["type"] === "command_execution") commands.push(withoutQuotes(textOf(item["command"])));
    },
    read(payload) {
      const tool_use_id = textOf(payload["call_id"]);
      if (payload["type"] === "function_call" || payload["type"] === "custom_tool_call") {
        calls.set(tool_use_id, { name: textOf(payload["name"]), input: inputOf(payload) });
        return [];
      }
      const call = calls.get(tool_use_id);
      if (call === undefined) return [];
      const output =
        typeof payload["output"] === "string" ? payload["output"] : JSON.stringify(payload["output"] ?? null);
      const inStream = isShown(call.input);
      if (succeeded(output)) denied = null;
      if (inStream || !blocked(output)) return [];
      denied = { type: "denied", tool_use_id, tool: call.name, message: output.slice(0, 500) };
      return [
        { type: "tool_use", tool_use_id, ...call },
        { type: "tool_result", tool_use_id, is_error: true, output },
      ];
    },
    end: () => (denied === null ? [] : [denied]),
  };
}

/** Only commands have an exit code. Other tools succeed unless their output says otherwise. */
function succeeded(output: string): boolean {
  const exit = exitOf(output);
  return exit === null ? !blocked(output) && !neverRan.test(output) : exit === "0";
}

function blocked(output: string): boolean {
  if (/rejected by user approval settings|^patch rejected/.test(output)) return true;
  return exitOf(output) !== "0" && /read-only file system|operation not permitted|permission denied/i.test(output);
}

/** The exit code precedes the command's output. */
function exitOf(output: string): string | null {
  return /^(?:Exit code:|Process exited with code) (-?\d+)$/m.exec(output)?.[1] ?? null;
}

const neverRan = /^(?:unsupported |failed to parse function arguments|(?:MCP )?tool call error|aborted)/;

function inputOf(payload: Fields): unknown {
  const text = textOf(payload["arguments"]);
  if (text === "") return { text: textOf(payload["input"]) };
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return { text };
    throw error;
  }
}

/** Strips quotes for comparison, because the stream shows a command as quoted for its shell. */
function withoutQuotes(command: string): string {
  return command.replaceAll(/['"\\\s]/g, "");
}
