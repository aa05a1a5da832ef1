import type { Usage } from "../../../model/event.ts";
import { apiFailureReason } from "./api-failure-reason.ts";
import { createHiddenCalls } from "./codex-hidden-calls.ts";
import { itemCall, itemResult } from "./codex-items.ts";
import type { Conclusion, Reader, ClientMessage, Turn } from "./definition.ts";
import { type Fields, fieldsOf, numberOf, textOf } from "./fields.ts";

export interface CodexReader extends Reader {
  /** The thread id, or null until codex reports it. */
  session(): string | null;
}

/** Reads the lines of `codex exec --json`, then the lines of the thread's file. */
export function createCodexReader({ session: from, mode }: Pick<Turn, "session" | "mode">): CodexReader {
  const shown = new Set<string>();
  const hidden = createHiddenCalls();
  let session: string | null = null;
  let text: string | null = null;
  let end: Conclusion | null = null;
  let ofThread: Usage | null = null;
  let ofTurn: Usage | null = null;
  let lastError = "";

  const item = (value: Fields, completed: boolean): readonly ClientMessage[] | null => {
    if (value["type"] === "agent_message") {
      if (!completed) return [];
      text = textOf(value["text"]);
      return [{ type: "assistant", text }];
    }
    if (value["type"] === "reasoning")
      return completed ? [{ type: "system", subtype: "reasoning", data: { text: textOf(value["text"]) } }] : [];
    if (value["type"] === "error") return [{ type: "error", message: textOf(value["message"]) }];
    const call = itemCall(value);
    if (call === null) return null;
    const messages: ClientMessage[] = [];
    if (!shown.has(call.tool_use_id)) messages.push(call);
    shown.add(call.tool_use_id);
    if (!completed) return messages;
    hidden.shown(value);
    const { result, denied } = itemResult(value);
    messages.push(result);
    if (denied !== null && mode !== "bypassPermissions")
      messages.push({ type: "denied", tool_use_id: call.tool_use_id, tool: call.name, message: denied });
    return messages;
  };

  /** The stream's totals cover the whole thread, including earlier turns. The thread's file has the totals of this turn. */
  const usage = (): readonly ClientMessage[] => {
    if (ofTurn !== null) return [{ type: "usage", usage: ofTurn }];
    if (ofThread === null) return [];
    if (from === null) return [{ type: "usage", usage: ofThread }];
    return [
      {
        type: "system",
        subtype: "usage_unknown",
        data: {
          why: "codex did not report the usage of this run alone, so none was counted",
          of_session: ofThread,
        },
      },
    ];
  };

  return {
    session: () => session,
    read(message) {
      switch (message["type"]) {
        case "thread.started":
          session = textOf(message["thread_id"]) || null;
          return session === null ? null : [{ type: "session", id: session }];
        case "turn.started":
          end = null;
          return [];
        case "item.started":
        case "item.updated":
        case "item.completed":
          return item(fieldsOf(message["item"]), message["type"] === "item.completed");
        case "turn.completed":
          ofThread = usageOf(message["usage"]);
          end = { ok: true, text };
          return [];
        case "turn.failed":
          end = failure(textOf(fieldsOf(message["error"])["message"]), text);
          return [];
        case "error": {
          // codex repeats the same error while it waits for the network; repeats must not count as activity
          const error = textOf(message["message"]);
          if (error === lastError) return [];
          lastError = error;
          return [{ type: "error", message: error }];
        }
        case "token_usage_record":
          ofTurn = usageOf(fieldsOf(message["payload"])["turn_token_usage"]) ?? ofTurn;
          return [];
        case "response_item":
          return mode === "bypassPermissions" ? [] : hidden.read(fieldsOf(message["payload"]));
        case "rollout_end":
          return [...hidden.end(), ...usage()];
        default:
          return null;
      }
    },
    conclude({ exitCode, stderr }) {
      if (end !== null) return end;
      if (exitCode === 0 || !/no rollout found for thread|Session not found/.test(stderr)) return null;
      return {
        ok: false,
        reason: "session_not_found",
        message: `codex no longer has session ${from ?? ""} on this runner. Start a new run.`,
      };
    },
  };
}

function usageOf(value: unknown): Usage | null {
  const input = numberOf(fieldsOf(value)["input_tokens"]);
  const output = numberOf(fieldsOf(value)["output_tokens"]);
  return input === null || output === null ? null : { input_tokens: input, output_tokens: output, cost_usd: null };
}

function failure(reported: string, text: string | null): Conclusion {
  const message = reported === "" ? "codex failed without an error message." : reported;
  const reason = message.startsWith("Missing environment variable")
    ? "provider_auth"
    : /high demand/.test(message)
      ? "provider_network"
      : apiFailureReason(null, message);
  return { ok: false, reason, message, ...(text === null ? {} : { text }) };
}
