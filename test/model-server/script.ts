/** The scripted model's answers as plain data, so that a test shows its whole conversation in one place. */
export type Script = readonly Rule[] | ((request: ModelRequest) => Turn);

export interface Rule {
  /** A string that the last user text must end with, or a RegExp tested against that text. */
  when: string | RegExp;
  /** The n-th turn answers the n-th request after that user text. The last one answers all further requests. */
  turns: readonly Turn[];
}

export type Turn = Answer | Failure;

export interface Answer {
  text?: string;
  tool?: ToolCall;
  tools?: readonly ToolCall[];
  usage?: { input_tokens: number; output_tokens: number };
  /** Reports that the answer reached the output token limit. */
  token_limit?: true;
  /** A pause before each chunk of a streamed answer. */
  slow_ms_per_chunk?: number;
  /** Breaks the connection after this many bytes of the body. */
  cut_after_bytes?: number;
  /**
   * A fault in the middle of a streamed answer: a chunk that is not JSON, an error from the service, an early end, or
   * silence until the client disconnects. Only an answer that stalls may be unstreamed.
   */
  stream_fault?: "malformed" | "error" | "ends_early" | "stalls";
  /** How often a faulty answer is served before the next turn is used. Defaults to always. */
  times?: number;
}

export type Failure = (
  | { error: { status: number; type?: string; message: string; headers?: Readonly<Record<string, string>> } }
  /** Accepts the request and never answers. */
  | { hang: true }
  /** Closes the connection without an answer. */
  | { close: true }
  /** Answers 200 with a web page. */
  | { web_page: true }
) & { times?: number };

/**
 * `write_file {path, content}`, `read_file {path}` and `shell {command}` become the matching tool of the client. Any
 * other name, and any call with `exact`, is passed unchanged.
 */
export interface ToolCall {
  name: string;
  input: Readonly<Record<string, unknown>>;
  /** Calls the tool by this name even if the client does not offer it. */
  exact?: true;
  /** Sends only this many characters of the input's JSON, in dialects that send it as text. */
  cut_input?: number;
}

export type DialectName = "anthropic" | "responses" | "chat" | "gemini" | "converse";

/** One message as the model received it, independent of the dialect. */
export interface Message {
  role: "system" | "user" | "assistant";
  text: string;
  tool_calls: readonly ToolCall[];
  tool_results: readonly string[];
}

export interface OfferedTool {
  name: string;
  /** Whether the tool takes free text instead of JSON, like some tools of the Responses API. */
  takesText: boolean;
}

/** A request in a form common to all dialects. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  messages: Message[];
  tools: OfferedTool[];
  /** The schema of structured output that the client asks for (a title, a routing decision). Not a turn of the conversation. */
  schema: unknown;
}

export interface Reply {
  model: string;
  text: string;
  calls: readonly (ToolCall & { id: string; takesText: boolean })[];
  usage: { input_tokens: number; output_tokens: number };
  reachedLimit: boolean;
}

/** One event of a stream. */
export interface Frame {
  event?: string;
  data: unknown;
}

export interface Dialect {
  name: DialectName;
  read(body: Readonly<Record<string, unknown>>, path: string): ModelRequest;
  whole(reply: Reply): unknown;
  frames(reply: Reply): Frame[];
  /** The stream format, if it is not server-sent events. */
  stream?: { type: string; encode(event: string, payload: string): Uint8Array };
  /** The last line of a stream, if the dialect has one. */
  farewell?: string;
  error(status: number, type: string | undefined, message: string): unknown;
  /** The error format in the middle of a stream, if it differs. */
  streamError?(type: string, message: string): Frame;
}
