import { stripVTControlCharacters } from "node:util";
import type { FailureReason } from "../../../model/states.ts";
import { apiFailureReason } from "./api-failure-reason.ts";
import type { Conclusion, Reader, ClientMessage, Turn } from "./definition.ts";
import { type Fields, fieldsOf, numberOf, textOf } from "./fields.ts";

/** Reads the lines of `gemini --output-format=stream-json`. Text arrives in pieces until a tool call or the end. */
export function createGeminiReader({ session: from }: Pick<Turn, "session">): Reader {
  const tools = new Map<string, string>();
  let pieces = "";
  let text: string | null = null;
  let end: Conclusion | null = null;

  const takeText = (): ClientMessage[] => {
    if (pieces === "") return [];
    text = pieces;
    pieces = "";
    return [{ type: "assistant", text }];
  };

  const message = (fields: Fields): readonly ClientMessage[] => {
    const content = textOf(fields["content"]);
    if (fields["role"] !== "assistant" || content === "") return [];
    if (fields["delta"] !== true) pieces = "";
    pieces += content;
    return [{ type: "partial", text: content }];
  };

  const toolResult = (fields: Fields): readonly ClientMessage[] => {
    const tool_use_id = textOf(fields["tool_id"]);
    const tool = tools.get(tool_use_id) ?? "a tool";
    const fault = fieldsOf(fields["error"]);
    const is_error = fields["status"] !== "success";
    const messages: ClientMessage[] = [
      { type: "tool_result", tool_use_id, is_error, output: fields["output"] ?? fault["message"] ?? "" },
    ];
    if (is_error && wasDenied(tool, textOf(fault["type"])))
      messages.push({ type: "denied", tool_use_id, tool, message: textOf(fault["message"]) });
    return messages;
  };

  return {
    read(fields) {
      switch (fields["type"]) {
        case "init":
          return [{ type: "session", id: textOf(fields["session_id"]), data: { model: fields["model"] } }];
        case "message":
          end = null;
          return message(fields);
        case "tool_use": {
          end = null;
          const tool_use_id = textOf(fields["tool_id"]);
          const name = textOf(fields["tool_name"]);
          tools.set(tool_use_id, name);
          return [...takeText(), { type: "tool_use", tool_use_id, name, input: fields["parameters"] ?? {} }];
        }
        case "tool_result":
          return toolResult(fields);
        case "error":
          return [{ type: "error", message: textOf(fields["message"]) }];
        case "result": {
          const messages = [...takeText(), ...usageOf(fieldsOf(fields["stats"]))];
          end = fields["status"] === "success" ? { ok: true, text } : failure(fieldsOf(fields["error"]), text);
          return messages;
        }
        default:
          return null;
      }
    },
    conclude: ({ exitCode, stderr }) => end ?? conclusionOfExit(exitCode, stderr, from),
  };
}

/** Gemini reports a tool that this mode removes as unknown. Only names of real tools count as denied. */
const restricted = new Set([
  "write_file",
  "replace",
  "run_shell_command",
  "web_fetch",
  "activate_skill",
  "write_todos",
]);

function wasDenied(tool: string, fault: string): boolean {
  return fault === "policy_violation" || (fault === "tool_not_registered" && restricted.has(tool));
}

function usageOf(stats: Fields): ClientMessage[] {
  const input_tokens = numberOf(stats["input_tokens"]);
  const output_tokens = numberOf(stats["output_tokens"]);
  if (input_tokens === null || output_tokens === null) return [];
  return [{ type: "usage", usage: { input_tokens, output_tokens, cost_usd: null } }];
}

const reasons: Readonly<Record<string, FailureReason>> = {
  FatalTurnLimitedError: "max_turns",
  FatalAuthenticationError: "provider_auth",
  FatalToolExecutionError: "internal",
};

function failure(fault: Fields, text: string | null): Conclusion {
  const message = textOf(fault["message"]) || "gemini failed without an error message.";
  const status = /"code":\s*([45]\d\d)\b/.exec(message)?.[1];
  const reason =
    reasons[textOf(fault["type"])] ?? apiFailureReason(status === undefined ? null : Number(status), message);
  return { ok: false, reason, message, ...(text === null ? {} : { text }) };
}

/** Handles an exit before gemini prints any message. */
function conclusionOfExit(exitCode: number | null, stderr: string, from: string | null): Conclusion | null {
  const fail = (reason: FailureReason, message: string): Conclusion => ({ ok: false, reason, message });
  const excerpt = stripVTControlCharacters(stderr).trim().slice(-500);
  if (exitCode === 41) return fail("provider_auth", excerpt);
  if (exitCode === 42 && from !== null && /Error resuming session/.test(stderr))
    return fail("session_not_found", `gemini no longer has session ${from} for this directory. Start a new run.`);
  if (exitCode === 55)
    return fail(
      "refused",
      'gemini refuses to work in an untrusted directory, and the agent does not trust this one (trust_project_settings). Give the profile `home: "session"`, or set security.folderTrust.enabled to false in ~/.gemini/settings.json. Either way, gemini does not read the project\'s own settings.',
    );
  return null;
}
