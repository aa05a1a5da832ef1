import type { ClientMessage } from "./definition.ts";
import { type Fields, toFields, toText } from "./fields.ts";

type Denial = Extract<ClientMessage, { type: "denied" }>;

/**
 * Finds tool calls that codex's sandbox blocked. Codex omits them from its stream but records them in the thread's
 * file.
 */
export interface HiddenCalls {
  /** Notes an item that appeared in the stream. */
  addShown(item: Fields): void;
  /** Reads the next line of the thread's file. */
  read(payload: Fields): readonly ClientMessage[];
  /** Returns the last denial if no later call succeeded. */
  end(): readonly Denial[];
}

export function createHiddenCalls(): HiddenCalls {
  const shownCommands: string[] = [];
  const calls = new Map<string, { name: string; input: unknown }>();
  let lastDenial: Denial | null = null;

  const takeShown = (input: unknown): boolean => {
    const command = withoutQuotes(toText(toFields(input)["cmd"]));
    const index = command === "" ? -1 : shownCommands.findIndex((shown) => shown.endsWith(command));
    if (index >= 0) shownCommands.splice(index, 1);
    return index >= 0;
  };

  return {
    addShown(item) {
      if (item["type"] === "command_execution") shownCommands.push(withoutQuotes(toText(item["command"])));
    },
    read(payload) {
      const tool_use_id = toText(payload["call_id"]);
      if (payload["type"] === "function_call" || payload["type"] === "custom_tool_call") {
        calls.set(tool_use_id, { name: toText(payload["name"]), input: parseInput(payload) });
        return [];
      }
      const call = calls.get(tool_use_id);
      if (call === undefined) return [];
      const output =
        typeof payload["output"] === "string" ? payload["output"] : JSON.stringify(payload["output"] ?? null);
      const wasShown = takeShown(call.input);
      if (isSuccess(output)) lastDenial = null;
      if (wasShown || !isBlocked(output)) return [];
      lastDenial = { type: "denied", tool_use_id, tool: call.name, message: output.slice(0, 500) };
      return [
        { type: "tool_use", tool_use_id, ...call },
        { type: "tool_result", tool_use_id, is_error: true, output },
      ];
    },
    end: () => (lastDenial === null ? [] : [lastDenial]),
  };
}

/** Only commands have an exit code. Other tools succeed unless their output says otherwise. */
function isSuccess(output: string): boolean {
  const exitCode = parseExitCode(output);
  return exitCode === null ? !isBlocked(output) && !notExecuted.test(output) : exitCode === "0";
}

function isBlocked(output: string): boolean {
  if (/rejected by user approval settings|^patch rejected/.test(output)) return true;
  return (
    parseExitCode(output) !== "0" && /read-only file system|operation not permitted|permission denied/i.test(output)
  );
}

/** Finds the exit code, which codex prints before the command's output. */
function parseExitCode(output: string): string | null {
  return /^(?:Exit code:|Process exited with code) (-?\d+)$/m.exec(output)?.[1] ?? null;
}

const notExecuted = /^(?:unsupported |failed to parse function arguments|(?:MCP )?tool call error|aborted)/;

function parseInput(payload: Fields): unknown {
  const text = toText(payload["arguments"]);
  if (text === "") return { text: toText(payload["input"]) };
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
