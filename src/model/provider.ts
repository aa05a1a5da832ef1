import type { Usage } from "./event.ts";

/** Seam 5, provider: an adapter to a model service. Sessions are plain data, so that any runner can go on. */
export interface Provider {
  readonly name: string;
  createSession(options: SessionOptions): Promise<ProviderSession>;
  /** null for an id it does not know. */
  resumeSession(session_id: string): Promise<ProviderSession | null>;
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
  sendMessage(text: string, options: TurnOptions): Promise<Turn>;
  submitToolResults(results: ToolResult[], options: TurnOptions): Promise<Turn>;
}

export interface TurnOptions {
  signal: AbortSignal;
  onText?: (delta: string) => void;
}

export interface ToolResult {
  tool_use_id: string;
  output: string;
  is_error: boolean;
}

/** A failed turn is a value: the loop decides what to do with it. */
export type Turn =
  | { ok: true; text: string; tool_uses: ToolUse[]; usage: Usage; stop: "end" | "tool_use" | "length" }
  | { ok: false; error: ProviderFault };

export interface ToolUse {
  tool_use_id: string;
  name: string;
  input: unknown;
}

export interface ProviderFault {
  kind: "authentication" | "rate_limit" | "network" | "invalid_response";
  message: string;
  retry_after_ms?: number;
}
