/** What the scripted model says: plain data, so that a test shows its whole conversation in one place. */
export type Script = readonly Rule[] | ((asked: Asked) => Turn);

export interface Rule {
  /** A string: the last user text ends with it. A RegExp: tested against that text. */
  when: string | RegExp;
  /** The n-th answers the n-th request after that user text; the last one answers all further ones. */
  turns: readonly Turn[];
}

export type Turn = Answer | Failure;

export interface Answer {
  text?: string;
  tool?: ToolCall;
  tools?: readonly ToolCall[];
  usage?: { input_tokens: number; output_tokens: number };
  /** A pause before each chunk of a streamed answer. */
  slow_ms_per_chunk?: number;
  /** The connection breaks after so many bytes of the body. */
  cut_after_bytes?: number;
  /** In the middle of a streamed answer: a chunk that is not JSON, an error of the service, or a clean but early end. */
  stream_fault?: "malformed" | "error" | "ends_early";
  /** For a broken answer: how often, before the next turn takes its place. Unless given, always. */
  times?: number;
}

export type Failure = (
  | { error: { status: number; type?: string; message: string; headers?: Readonly<Record<string, string>> } }
  /** The request is taken and never answered. */
  | { hang: true }
  /** The connection is closed without an answer. */
  | { close: true }
  /** 200, and a web page where an answer should be. */
  | { web_page: true }
) & { times?: number };

/**
 * `write_file {path, content}`, `read_file {path}` and `shell {command}` become the tool the client offers for it;
 * any other name is passed as it stands, and so is one that is `exact`.
 */
export interface ToolCall {
  name: string;
  input: Readonly<Record<string, unknown>>;
  /** Also when the client does not offer it: to see what it makes of that. */
  exact?: true;
  /** Sends only so many characters of the input's JSON, in dialects that send it as text. */
  cut_input?: number;
}

export type DialectName = "anthropic" | "responses" | "chat" | "gemini" | "converse";

/** One message as the model got it, whatever the dialect. */
export interface Message {
  role: "system" | "user" | "assistant";
  text: string;
  tool_calls: readonly ToolCall[];
  tool_results: readonly string[];
}

export interface OfferedTool {
  name: string;
  /** Free text in place of JSON, as some tools of the Responses API take. */
  takesText: boolean;
}

/** A request read into what all dialects have in common. */
export interface Asked {
  model: string;
  stream: boolean;
  messages: Message[];
  tools: OfferedTool[];
  /** The client wants JSON of a shape of its own (a title, a routing decision): no turn of a conversation. */
  schema: unknown;
}

export interface Reply {
  model: string;
  text: string;
  calls: readonly (ToolCall & { id: string; takesText: boolean })[];
  usage: { input_tokens: number; output_tokens: number };
}

/** One event of a stream. */
export interface Frame {
  event?: string;
  data: unknown;
}

export interface Dialect {
  name: DialectName;
  read(body: Readonly<Record<string, unknown>>, path: string): Asked;
  whole(reply: Reply): unknown;
  frames(reply: Reply): Frame[];
  /** How its streams look where they are not server-sent events. */
  stream?: { type: string; encode(event: string, payload: string): Uint8Array };
  /** The last line of a stream, where the dialect has one. */
  farewell?: string;
  error(status: number, type: string | undefined, message: string): unknown;
  /** The same in the middle of a stream, where it has another shape there. */
  streamError?(type: string, message: string): Frame;
}
