import type { Usage } from "./event.ts";

/** Seam 5, provider: an adapter to a model service. Sessions are plain data, so that any runner can continue one. */
export interface Provider {
  readonly name: string;
  createSession(options: SessionOptions): Promise<ProviderSession>;
  /** null for an id that its store does not know. With `model`, that one answers from here on. */
  resumeSession(session_id: string, model?: string): Promise<ProviderSession | null>;
  /** Ends what it keeps running. Its sessions stay in their store. */
  close(): Promise<void>;
}

/** Where a provider keeps its sessions. A state is plain JSON data. */
export interface SessionStore {
  /** null: unknown. */
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
  /** What the model said last; null before its first answer. */
  readonly last_message: string | null;
  /** Tools the model has called and has no result of yet: their results come before the next message. */
  readonly pending: readonly ToolUse[];
  sendMessage(text: string, options: TurnOptions): Promise<Turn>;
  /** `message`: what a person said meanwhile, which the model reads after the results. */
  submitToolResults(results: ToolResult[], options: TurnOptions & { message?: string }): Promise<Turn>;
  /** Has the model summarize the beginning of the conversation. Pending tool uses stay pending. */
  compact(options: CompactOptions): Promise<Compacted>;
}

export interface CompactOptions extends Pick<TurnOptions, "signal"> {
  /** The most text to summarize in one request; what is in the middle of more is left out. */
  max_characters: number;
}

export type Compacted =
  /** `summarized` and `kept` count messages. */
  | { ok: true; summary: string; summarized: number; kept: number; usage: Usage }
  /** Nothing was asked: the conversation is too short to leave anything out. */
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

/** A failed turn is a value, and leaves the session as it was before: the loop decides what to do. */
export type Turn =
  | { ok: true; text: string; tool_uses: ToolUse[]; usage: Usage; stop: "end" | "tool_use" | "length" | "refused" }
  | { ok: false; error: ProviderFault };

export interface ToolUse {
  tool_use_id: string;
  name: string;
  input: unknown;
  /** Why the input could not be read; then `input` is what came, as text. */
  fault?: string;
}

export interface ProviderFault {
  kind: "authentication" | "rate_limit" | "network" | "invalid_response";
  message: string;
  retry_after_ms?: number;
  /** The conversation does not fit the model's window. */
  too_long?: true;
}
