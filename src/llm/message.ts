import type { Usage } from "../model/event.ts";
import type { ProviderFault, SessionOptions, ToolResult, ToolUse, TurnOptions } from "../model/provider.ts";

/** A conversation as all built-in providers keep it. It is converted only where a model is called. */
export interface Conversation {
  format: typeof conversationFormat;
  options: SessionOptions;
  messages: Message[];
  /** What the summary in the first message replaces: the original first message, and the number of answers. */
  compacted?: { task: string; answers: number };
  /** Set if the answer is to be a summary of another conversation. */
  purpose?: "summary";
}

export const conversationFormat = "drover-conversation-1";

export type Message =
  | { role: "user"; text: string }
  | { role: "assistant"; parts: Part[] }
  | { role: "tool"; results: ToolResult[] };

/** `meta` belongs to the vendor and is sent back unchanged, for example the signature of a reasoning block. */
export type Part =
  | { type: "text"; text: string; meta?: unknown }
  | { type: "reasoning"; text: string; meta?: unknown }
  | ({ type: "tool_use"; meta?: unknown } & ToolUse);

export type Generated =
  | { ok: true; parts: Part[]; usage: Usage; stop: "end" | "length" | "refused" }
  | { ok: false; error: ProviderFault };

/** The only part that differs between model services: turns a conversation into the next answer. Never rejects. */
export type Generate = (conversation: Conversation, options: TurnOptions) => Promise<Generated>;

export interface Model {
  generate: Generate;
  /** Stops whatever it keeps running between answers. */
  close?(): Promise<void>;
}
