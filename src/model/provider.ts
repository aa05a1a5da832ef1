import type { Usage } from "./event.ts";

/** An adapter for a model service. Sessions are plain data, so that any runner can continue them. */
export interface Provider {
  readonly name: string;
  createSession(options: SessionOptions): Promise<ProviderSession>;
  /** Returns null for an unknown id. `model` replaces the session's model for later turns. */
  resumeSession(session_id: string, model?: string): Promise<ProviderSession | null>;
  /** Stops background work. Sessions stay in their store. */
  close(): Promise<void>;
}

/** Stores the sessions of a provider. A state is plain JSON data. */
export interface SessionStore {
  /** Returns null for an unknown id. */
  load(session_id: string): Promise<unknown>;
  save(session_id: string, state: unknown): Promise<void>;
}

export interface SessionOptions {
  model: string;
  system_prompt: string | null;
  tools: ToolDefinition[];
  max_tokens?: number;
}

export interface ToolDefinition {
  name: string;
  description: string;
  input_schema: Record<string, unknown>;
}

export interface ProviderSession {
  readonly session_id: string;
  readonly model: string;
  /** The model's last message. null before its first answer. */
  readonly last_message: string | null;
  /** Tool calls without a result. Their results must be submitted before the next message. */
  readonly pending: readonly ToolUse[];
  sendMessage(text: string, options: TurnOptions): Promise<Turn>;
  /** `message` is user input that arrived while the tools ran. The model reads it after the results. */
  submitToolResults(results: ToolResult[], options: TurnOptions & { message?: string }): Promise<Turn>;
  /** Replaces the beginning of the conversation with a summary by the model. Pending tool uses stay pending. */
  compact(options: CompactOptions): Promise<CompactResult>;
}

export interface CompactOptions extends Pick<TurnOptions, "signal"> {
  /** Maximum length of the text to summarize. A longer text loses its middle. */
  max_characters: number;
}

export type CompactResult =
  /** `summarized` and `kept` count messages. */
  | { ok: true; summary: string; summarized: number; kept: number; usage: Usage }
  /** No request was made, because the conversation is too short to compact. */
  | { ok: true; summary: null }
  | { ok: false; error: ProviderFault };

export interface TurnOptions {
  signal: AbortSignal;
  onText?: (delta: string) => void;
}

export interface ToolResult {
  tool_use_id: string;
  output: string;
  is_error: boolean;
}

/** A failed turn is a value and leaves the session unchanged. */
export type Turn =
  | { ok: true; text: string; tool_uses: ToolUse[]; usage: Usage; stop: "end" | "tool_use" | "length" | "refused" }
  | { ok: false; error: ProviderFault };

export interface ToolUse {
  tool_use_id: string;
  name: string;
  input: unknown;
  /** Why the input could not be parsed. `input` is then the raw text. */
  fault?: string;
}

export interface ProviderFault {
  kind: "authentication" | "rate_limit" | "network" | "invalid_response";
  message: string;
  retry_after_ms?: number;
  /** The conversation exceeds the model's context window. */
  too_long?: true;
}
