import type { Usage } from "../model/event.ts";
import type { ProviderFault, SessionOptions, ToolResult, ToolUse, TurnOptions } from "../model/provider.ts";

/** The format in which all built-in providers store conversations. It is converted only for calls to a model. */
export interface Conversation {
  format: typeof conversationFormat;
  options: SessionOptions;
  messages: Message[];
  /** Set once the conversation was compacted: the original task, and how many answers the summary replaces. */
  compacted?: { task: string; answers: number };
  /** Set if this is a request to summarize another conversation. */
  purpose?: "summary";
}

export const conversationFormat = "drover-conversation-1";

export type Message =
  | { role: "user"; text: string }
  | { role: "assistant"; parts: Part[] }
  | { role: "tool"; results: ToolResult[] };

/** `meta` belongs to the service and is sent back unchanged, for example the signature of a reasoning block. */
export type Part =
  | { type: "text"; text: string; meta?: unknown }
  | { type: "reasoning"; text: string; meta?: unknown }
  | ({ type: "tool_use"; meta?: unknown } & ToolUse);

export type GenerateResult =
  | { ok: true; parts: Part[]; usage: Usage; stop: "end" | "length" | "refused" }
  | { ok: false; error: ProviderFault };

/** Generates the next answer of a conversation. Only this differs between model services. Never rejects. */
export type Generate = (conversation: Conversation, options: TurnOptions) => Promise<GenerateResult>;

export interface Model {
  generate: Generate;
  /** Stops processes that run between answers. */
  close?(): Promise<void>;
}
