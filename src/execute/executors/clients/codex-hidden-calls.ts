import type { Said } from "./definition.ts";
import { type Fields, fieldsOf, textOf } from "./fields.ts";

type Denied = Extract<Said, { type: "denied" }>;

/** What its sandbox stops codex leaves out of its stream, as if it had never tried; the thread's file has it. */
export interface HiddenCalls {
  /** An item that the stream had. */
  shown(item: Fields): void;
  /** A line of the thread's file, in their order. */
  read(payload: Fields): readonly Said[];
  /** A denial that no success came after. */
  end(): readonly Denied[];
}

export function createHiddenCalls(): HiddenCalls {
  const commands: string[] = [];
  const calls = new Map<string, { name: string; input: unknown }>();
  let denied: Denied | null = null;

  const isShown = (input: unknown): boolean => {
    const command = bare(textOf(fieldsOf(input)["cmd"]));
    const at = command === "" ? -1 : commands.findIndex((each) => each.endsWith(command));
    if (at >= 0) commands.splice(at, 1);
    return at >= 0;
  };

  return {
    shown(item) {
      if (item["type"] === "command_execution") commands.push(bare(textOf(item["command"])));
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
      const visible = isShown(call.input);
      if (succeeded(output)) denied = null;
      if (visible || !stopped(output)) return [];
      denied = { type: "denied", tool_use_id, tool: call.name, message: output.slice(0, 500) };
      return [
        { type: "tool_use", tool_use_id, ...call },
        { type: "tool_result", tool_use_id, is_error: true, output },
      ];
    },
    end: () => (denied === null ? [] : [denied]),
  };
}

/** Only a command has an exit code; what another tool answers is a success unless it says otherwise. */
function succeeded(output: string): boolean {
  const exit = exitOf(output);
  return exit === null ? !stopped(output) && !neverRan.test(output) : exit === "0";
}

function stopped(output: string): boolean {
  if (/rejected by user approval settings|^patch rejected/.test(output)) return true;
  return exitOf(output) !== "0" && /read-only file system|operation not permitted|permission denied/i.test(output);
}

/** Stands before what the command printed. */
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

/** The stream has a command as its shell got it, quoted; so both are compared without quotes. */
function bare(command: string): string {
  return command.replaceAll(/['"\\\s]/g, "");
}
