import type { Usage } from "../../../model/event.ts";
import { classifyApiError } from "./api-failure-reason.ts";
import { createHiddenCalls } from "./codex-hidden-calls.ts";
import { toToolUse, toToolResult } from "./codex-items.ts";
import type { Conclusion, Reader, ClientMessage, Turn } from "./definition.ts";
import { type Fields, toFields, toNumber, toText } from "./fields.ts";

export interface CodexReader extends Reader {
  /** The thread id, or null until codex reports it. */
  getSession(): string | null;
}

/** Reads the lines of `codex exec --json`, then the lines of the thread's file. */
export function createCodexReader({ session: resumedSession, mode }: Pick<Turn, "session" | "mode">): CodexReader {
  const loggedCalls = new Set<string>();
  const hidden = createHiddenCalls();
  let session: string | null = null;
  let text: string | null = null;
  let conclusion: Conclusion | null = null;
  let threadUsage: Usage | null = null;
  let turnUsage: Usage | null = null;
  let lastError = "";

  const readItem = (value: Fields, isCompleted: boolean): readonly ClientMessage[] | null => {
    if (value["type"] === "agent_message") {
      if (!isCompleted) return [];
      text = toText(value["text"]);
      return [{ type: "assistant", text }];
    }
    if (value["type"] === "reasoning")
      return isCompleted ? [{ type: "system", subtype: "reasoning", data: { text: toText(value["text"]) } }] : [];
    if (value["type"] === "error") return [{ type: "error", message: toText(value["message"]) }];
    const call = toToolUse(value);
    if (call === null) return null;
    const messages: ClientMessage[] = [];
    if (!loggedCalls.has(call.tool_use_id)) messages.push(call);
    loggedCalls.add(call.tool_use_id);
    if (!isCompleted) return messages;
    hidden.addShown(value);
    const { result, denied } = toToolResult(value);
    messages.push(result);
    if (denied !== null && mode !== "bypassPermissions")
      messages.push({ type: "denied", tool_use_id: call.tool_use_id, tool: call.name, message: denied });
    return messages;
  };

  /**
   * Prefers the usage of this turn from the thread's file. The stream's totals cover the whole thread, including
   * earlier runs.
   */
  const reportUsage = (): readonly ClientMessage[] => {
    if (turnUsage !== null) return [{ type: "usage", usage: turnUsage }];
    if (threadUsage === null) return [];
    if (resumedSession === null) return [{ type: "usage", usage: threadUsage }];
    return [
      {
        type: "system",
        subtype: "usage_unknown",
        data: {
          why: "codex did not report the usage of this run alone, so none was counted",
          of_session: threadUsage,
        },
      },
    ];
  };

  return {
    getSession: () => session,
    read(message) {
      switch (message["type"]) {
        case "thread.started":
          session = toText(message["thread_id"]) || null;
          return session === null ? null : [{ type: "session", id: session }];
        case "turn.started":
          conclusion = null;
          return [];
        case "item.started":
        case "item.updated":
        case "item.completed":
          return readItem(toFields(message["item"]), message["type"] === "item.completed");
        case "turn.completed":
          threadUsage = parseUsage(message["usage"]);
          conclusion = { ok: true, text };
          return [];
        case "turn.failed":
          conclusion = toFailure(toText(toFields(message["error"])["message"]), text);
          return [];
        case "error": {
          // codex repeats an error while it waits for the network; repeats must not count as activity.
          const error = toText(message["message"]);
          if (error === lastError) return [];
          lastError = error;
          return [{ type: "error", message: error }];
        }
        case "token_usage_record":
          turnUsage = parseUsage(toFields(message["payload"])["turn_token_usage"]) ?? turnUsage;
          return [];
        case "response_item":
          return mode === "bypassPermissions" ? [] : hidden.read(toFields(message["payload"]));
        case "rollout_end":
          return [...hidden.end(), ...reportUsage()];
        default:
          return null;
      }
    },
    conclude({ exitCode, stderr }) {
      if (conclusion !== null) return conclusion;
      if (exitCode === 0 || !/no rollout found for thread|Session not found/.test(stderr)) return null;
      return {
        ok: false,
        reason: "session_not_found",
        message: `codex no longer has session ${resumedSession ?? ""} on this runner. Start a new run.`,
      };
    },
  };
}

function parseUsage(value: unknown): Usage | null {
  const input = toNumber(toFields(value)["input_tokens"]);
  const output = toNumber(toFields(value)["output_tokens"]);
  return input === null || output === null ? null : { input_tokens: input, output_tokens: output, cost_usd: null };
}

function toFailure(reported: string, text: string | null): Conclusion {
  const message = reported === "" ? "codex failed without an error message." : reported;
  const reason = message.startsWith("Missing environment variable")
    ? "provider_auth"
    : /high demand/.test(message)
      ? "provider_network"
      : classifyApiError(null, message);
  return { ok: false, reason, message, ...(text === null ? {} : { text }) };
}
