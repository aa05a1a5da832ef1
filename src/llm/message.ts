import type { Usage } from "../model/event.ts";
import type { ProviderFault, SessionOptions, ToolResult, ToolUse, TurnOptions } from "../model/provider.ts";

/** A conversation as every provider of ours keeps it. It is translated where a model is called, and nowhere else. */
export interface Conversation {
  format: typeof conversationFormat;
  options: SessionOptions;
  messages: Message[];
  /** What the summary in the first message stands for: the first message as it was, and how many answers. */
  compacted?: { task: string; answers: number };
  /** Set where the answer wanted is a summary of another conversation. */
  purpose?: "summary";
}

export const conversationFormat = "drover-conversation-1";

export type Message =
  | { role: "user"; text: string }
  | { role: "assistant"; parts: Part[] }
  | { role: "tool"; results: ToolResult[] };

/** `meta` is the vendor's own and goes back to it untouched, such as the signature of a thought. */
export type Part =
  | { type: "text"; text: string; meta?: unknown }
  | { type: "reasoning"; text: string; meta?: unknown }
  | ({ type: "tool_use"; meta?: unknown } & ToolUse);

export type Generated =
  | { ok: true; parts: Part[]; usage: Usage; stop: "end" | "length" | "refused" }
  | { ok: false; error: ProviderFault };

/** The one thing that is special about a model service: from a conversation to the next answer. Never rejects. */
export type Generate = (conversation: Conversation, options: TurnOptions) => Promise<Generated>;

export interface Model {
  generate: Generate;
  /** Ends what it keeps running between answers. */
  close?(): Promise<void>;
}
