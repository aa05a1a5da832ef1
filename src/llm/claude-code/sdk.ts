import type { OptionalPackage } from "../optional-package.ts";
import type { Environment } from "../../model/environment.ts";

/** The part of the Agent SDK that Drover uses. It is an optional package, so its own types cannot be imported. */
export interface AgentSdk {
  query(input: { prompt: AsyncIterable<UserMessage>; options: Record<string, unknown> }): Query;
}

export const agentSdk: OptionalPackage = { name: "@anthropic-ai/claude-agent-sdk", version: "0.3.325" };

export interface Query extends AsyncIterable<SdkMessage> {
  close(): void;
  /** Stops the current turn without another request. */
  interrupt(): Promise<unknown>;
  mcpServerStatus(): Promise<McpStatus[]>;
  /** The cost of the session so far. The SDK may change or remove this call. */
  usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET?(): Promise<unknown>;
}

export interface McpStatus {
  name: string;
  status: string;
  error?: string;
  tools?: { name: string; annotations?: { readOnly?: boolean } }[];
}

export interface UserMessage {
  type: "user";
  message: { role: "user"; content: string };
  parent_tool_use_id: null;
  uuid?: string;
}

export type SdkMessage = { parent_tool_use_id?: string | null } & (
  | { type: "stream_event"; event: StreamEvent }
  | { type: "assistant"; error?: string; message: { content: { type: string; text?: string }[] } }
  | { type: "user"; message: { content: unknown } }
  | {
      type: "system";
      subtype: string;
      error?: string;
      error_status?: number | null;
      retry_delay_ms?: number;
    }
  | {
      type: "result";
      is_error: boolean;
      result?: string;
      errors?: string[];
      api_error_status?: number | null;
      total_cost_usd: number;
    }
);

/** The events of Anthropic's streamed messages. */
export type StreamEvent =
  | { type: "message_start"; message: { usage: TokenCounts } }
  | { type: "content_block_start"; index: number; content_block: Block }
  | { type: "content_block_delta"; index: number; delta: Delta }
  | { type: "message_delta"; delta: { stop_reason: string | null }; usage: TokenCounts }
  | { type: "content_block_stop" | "message_stop" | "ping" };

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string; signature?: string }
  | { type: "redacted_thinking"; data: string }
  | { type: "tool_use"; id: string; name: string };

export type Delta =
  | { type: "text_delta"; text: string }
  | { type: "thinking_delta"; thinking: string }
  | { type: "signature_delta"; signature: string }
  | { type: "input_json_delta"; partial_json: string };

export interface TokenCounts {
  input_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  output_tokens?: number | null;
}

/** The argument of the function that starts the SDK's program. The function returns an object like a ChildProcess. */
export interface SpawnRequest {
  command: string;
  args: string[];
  cwd?: string;
  env: Environment;
}
