import type { StoredEvent } from "../../src/model/event.ts";
import type { Usage } from "../../src/model/event.ts";

/** What one run said and did, in the order that a reader wants it. */
export type Item =
  | { kind: "user"; key: string; text: string; by: string | null }
  | { kind: "assistant"; key: string; text: string }
  | ToolItem
  | {
      kind: "question";
      key: string;
      request_id: string;
      tool: string;
      input: unknown;
      decision: string | null;
      by: string | null;
      message: string | null;
    }
  | { kind: "note"; key: string; text: string }
  | { kind: "error"; key: string; text: string }
  | { kind: "usage"; key: string; usage: Usage }
  | { kind: "result"; key: string; event: Extract<StoredEvent["event"], { type: "result" }> };

export interface ToolItem {
  kind: "tool";
  key: string;
  name: string;
  input: unknown;
  output: unknown;
  is_error: boolean;
  began: string;
  ended: string | null;
}

/** Our own reducer over events: nothing is believed but their types. */
export function conversationOf(events: readonly StoredEvent[]): Item[] {
  const items: Item[] = [];
  const tools = new Map<string, number>();
  const questions = new Map<string, number>();
  for (const { seq, at, event, run_id } of events) {
    const key = `${run_id}-${seq}`;
    switch (event.type) {
      case "assistant":
        items.push({ kind: "assistant", key, text: event.text });
        break;
      case "tool_use":
        tools.set(event.tool_use_id, items.length);
        items.push({
          kind: "tool",
          key,
          name: event.name,
          input: event.input,
          output: undefined,
          is_error: false,
          began: at,
          ended: null,
        });
        break;
      case "tool_result": {
        const index = tools.get(event.tool_use_id);
        const tool = index === undefined ? undefined : items[index];
        if (tool?.kind === "tool")
          items[index!] = { ...tool, output: event.output, is_error: event.is_error, ended: at };
        break;
      }
      case "permission_request":
        questions.set(event.request_id, items.length);
        items.push({
          kind: "question",
          key,
          request_id: event.request_id,
          tool: event.tool,
          input: event.input,
          decision: null,
          by: null,
          message: null,
        });
        break;
      case "permission_decision": {
        const index = questions.get(event.request_id);
        const question = index === undefined ? undefined : items[index];
        if (question?.kind === "question")
          items[index!] = { ...question, decision: event.decision, by: event.by, message: event.message ?? null };
        break;
      }
      case "system":
        if (event.subtype === "user_input") items.push({ kind: "user", key, text: textOf(event.data), by: null });
        else if (event.subtype === "compacted")
          items.push({ kind: "note", key, text: "The conversation was summarized to fit the model." });
        break;
      case "error":
        items.push({ kind: "error", key, text: event.message });
        break;
      case "usage":
        items.push({ kind: "usage", key, usage: event.usage });
        break;
      case "result":
        items.push({ kind: "result", key, event });
        break;
      default:
        break;
    }
  }
  return items;
}

function textOf(data: unknown): string {
  if (typeof data === "string") return data;
  const text = typeof data === "object" && data !== null ? (Reflect.get(data, "text") as unknown) : null;
  return typeof text === "string" ? text : JSON.stringify(data);
}
