import { stripVTControlCharacters } from "node:util";
import type { FailureReason } from "../../../model/states.ts";
import { reasonOfApiFault } from "./api-failure.ts";
import type { Conclusion, Reader, Said, Turn } from "./definition.ts";
import { type Fields, fieldsOf, numberOf, textOf } from "./fields.ts";

/** Lines of `gemini --output-format=stream-json`. Text comes in pieces only; a tool or the end makes them whole. */
export function createGeminiReader({ session: from }: Pick<Turn, "session">): Reader {
  const tools = new Map<string, string>();
  let pieces = "";
  let text: string | null = null;
  let end: Conclusion | null = null;

  const whole = (): Said[] => {
    if (pieces === "") return [];
    text = pieces;
    pieces = "";
    return [{ type: "assistant", text }];
  };

  const message = (fields: Fields): readonly Said[] => {
    const content = textOf(fields["content"]);
    if (fields["role"] !== "assistant" || content === "") return [];
    if (fields["delta"] !== true) pieces = "";
    pieces += content;
    return [{ type: "partial", text: content }];
  };

  const toolResult = (fields: Fields): readonly Said[] => {
    const tool_use_id = textOf(fields["tool_id"]);
    const tool = tools.get(tool_use_id) ?? "a tool";
    const fault = fieldsOf(fields["error"]);
    const is_error = fields["status"] !== "success";
    const said: Said[] = [
      { type: "tool_result", tool_use_id, is_error, output: fields["output"] ?? fault["message"] ?? "" },
    ];
    if (is_error && wasDenied(tool, textOf(fault["type"])))
      said.push({ type: "denied", tool_use_id, tool, message: textOf(fault["message"]) });
    return said;
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
          return [...whole(), { type: "tool_use", tool_use_id, name, input: fields["parameters"] ?? {} }];
        }
        case "tool_result":
          return toolResult(fields);
        case "error":
          return [{ type: "error", message: textOf(fields["message"]) }];
        case "result": {
          const said = [...whole(), ...usageOf(fieldsOf(fields["stats"]))];
          end = fields["status"] === "success" ? { ok: true, text } : failure(fieldsOf(fields["error"]), text);
          return said;
        }
        default:
          return null;
      }
    },
    conclude: ({ exitCode, stderr }) => end ?? conclusionOfExit(exitCode, stderr, from),
  };
}

/** Tools it has taken away in this mode are unknown to it; only names it really has are a matter of permission. */
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

function usageOf(stats: Fields): Said[] {
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
  const message = textOf(fault["message"]) || "gemini failed and did not say why.";
  const status = /"code":\s*([45]\d\d)\b/.exec(message)?.[1];
  const reason =
    reasons[textOf(fault["type"])] ?? reasonOfApiFault(status === undefined ? null : Number(status), message);
  return { ok: false, reason, message, ...(text === null ? {} : { text }) };
}

/** What it exits with before it has said anything. */
function conclusionOfExit(exitCode: number | null, stderr: string, from: string | null): Conclusion | null {
  const fail = (reason: FailureReason, message: string): Conclusion => ({ ok: false, reason, message });
  const told = stripVTControlCharacters(stderr).trim().slice(-500);
  if (exitCode === 41) return fail("provider_auth", told);
  if (exitCode === 42 && from !== null && /Error resuming session/.test(stderr))
    return fail("session_not_found", `gemini has no session ${from} for this directory any more. Start a new run.`);
  if (exitCode === 55)
    return fail(
      "refused",
      'gemini refuses to work in a folder that it does not trust, and this one is not trusted (trust_project_settings). Give the profile `home: "session"`, or set security.folderTrust.enabled to false in ~/.gemini/settings.json: the project\'s own settings stay unread all the same.',
    );
  return null;
}
