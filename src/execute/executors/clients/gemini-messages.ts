import { stripVTControlCharacters } from "node:util";
import type { FailureReason } from "../../../model/states.ts";
import { classifyApiError } from "./api-failure-reason.ts";
import type { Conclusion, Reader, ClientMessage, Turn } from "./definition.ts";
import { type Fields, toFields, toNumber, toText } from "./fields.ts";

/** Reads the lines of `gemini --output-format=stream-json`. Text arrives in pieces until a tool call or the end. */
export function createGeminiReader({ session: resumedSession }: Pick<Turn, "session">): Reader {
  const tools = new Map<string, string>();
  let pieces = "";
  let text: string | null = null;
  let conclusion: Conclusion | null = null;

  const takeText = (): ClientMessage[] => {
    if (pieces === "") return [];
    text = pieces;
    pieces = "";
    return [{ type: "assistant", text }];
  };

  const readMessage = (fields: Fields): readonly ClientMessage[] => {
    const content = toText(fields["content"]);
    if (fields["role"] !== "assistant" || content === "") return [];
    if (fields["delta"] !== true) pieces = "";
    pieces += content;
    return [{ type: "partial", text: content }];
  };

  const readToolResult = (fields: Fields): readonly ClientMessage[] => {
    const tool_use_id = toText(fields["tool_id"]);
    const tool = tools.get(tool_use_id) ?? "a tool";
    const error = toFields(fields["error"]);
    const is_error = fields["status"] !== "success";
    const messages: ClientMessage[] = [
      { type: "tool_result", tool_use_id, is_error, output: fields["output"] ?? error["message"] ?? "" },
    ];
    if (is_error && wasDenied(tool, toText(error["type"])))
      messages.push({ type: "denied", tool_use_id, tool, message: toText(error["message"]) });
    return messages;
  };

  return {
    read(fields) {
      switch (fields["type"]) {
        case "init":
          return [{ type: "session", id: toText(fields["session_id"]), data: { model: fields["model"] } }];
        case "message":
          conclusion = null;
          return readMessage(fields);
        case "tool_use": {
          conclusion = null;
          const tool_use_id = toText(fields["tool_id"]);
          const name = toText(fields["tool_name"]);
          tools.set(tool_use_id, name);
          return [...takeText(), { type: "tool_use", tool_use_id, name, input: fields["parameters"] ?? {} }];
        }
        case "tool_result":
          return readToolResult(fields);
        case "error":
          return [{ type: "error", message: toText(fields["message"]) }];
        case "result": {
          const messages = [...takeText(), ...readUsage(toFields(fields["stats"]))];
          conclusion = fields["status"] === "success" ? { ok: true, text } : toFailure(toFields(fields["error"]), text);
          return messages;
        }
        default:
          return null;
      }
    },
    conclude: ({ exitCode, stderr }) => conclusion ?? concludeExit(exitCode, stderr, resumedSession),
  };
}

/** The tools that a mode can remove. Gemini reports a removed tool as unknown, so these names count as denied. */
const restrictedTools = new Set([
  "write_file",
  "replace",
  "run_shell_command",
  "web_fetch",
  "activate_skill",
  "write_todos",
]);

function wasDenied(tool: string, errorType: string): boolean {
  return errorType === "policy_violation" || (errorType === "tool_not_registered" && restrictedTools.has(tool));
}

function readUsage(stats: Fields): ClientMessage[] {
  const input_tokens = toNumber(stats["input_tokens"]);
  const output_tokens = toNumber(stats["output_tokens"]);
  if (input_tokens === null || output_tokens === null) return [];
  return [{ type: "usage", usage: { input_tokens, output_tokens, cost_usd: null } }];
}

const reasons: Readonly<Record<string, FailureReason>> = {
  FatalTurnLimitedError: "max_turns",
  FatalAuthenticationError: "provider_auth",
  FatalToolExecutionError: "internal",
};

function toFailure(error: Fields, text: string | null): Conclusion {
  const message = toText(error["message"]) || "gemini failed without an error message.";
  const status = /"code":\s*([45]\d\d)\b/.exec(message)?.[1];
  const reason =
    reasons[toText(error["type"])] ?? classifyApiError(status === undefined ? null : Number(status), message);
  return { ok: false, reason, message, ...(text === null ? {} : { text }) };
}

/** Recognizes a failure that happened before gemini printed any message. */
function concludeExit(exitCode: number | null, stderr: string, resumedSession: string | null): Conclusion | null {
  const toConclusion = (reason: FailureReason, message: string): Conclusion => ({ ok: false, reason, message });
  const excerpt = stripVTControlCharacters(stderr).trim().slice(-500);
  if (exitCode === 41) return toConclusion("provider_auth", excerpt);
  if (exitCode === 42 && resumedSession !== null && /Error resuming session/.test(stderr))
    return toConclusion(
      "session_not_found",
      `gemini no longer has session ${resumedSession} for this directory. Start a new run.`,
    );
  if (exitCode === 55)
    return toConclusion(
      "refused",
      'gemini refuses to work in an untrusted directory, and the agent does not trust this one (trust_project_settings). Set `home: "session"` in the profile, or set security.folderTrust.enabled to false in ~/.gemini/settings.json. Either way, gemini does not read the project\'s own settings.',
    );
  return null;
}
