import { randomUUID } from "node:crypto";
import { Server } from "@modelcontextprotocol/server";
import type { ToolResult, TurnOptions } from "../../model/provider.ts";
import type { Conversation, GenerateResult, Part } from "../conversation.ts";
import type { ProviderHost } from "../definition.ts";
import { cancelled, toUnusableAnswerFault } from "../faults.ts";
import { StreamedAnswer } from "./streamed-answer.ts";
import { type Deferred, defer } from "./deferred.ts";
import { toProviderFault, toProgramFault, type SdkFailure, providerInfo } from "./faults.ts";
import { Inbox } from "./inbox.ts";
import type { AgentSdk, Query, SdkMessage, SpawnRequest } from "./sdk.ts";
import { SdkProcess } from "./sdk-process.ts";
import { continuation, toFullName, toTranscript, toWireName } from "./transcript.ts";

export interface SessionHost extends Pick<ProviderHost, "start" | "workDirectory"> {
  sdk: AgentSdk;
  env: Readonly<Record<string, string>>;
}

/** Claude Code shortens longer tool results. */
const maxResultCharacters = 500_000;

/** A Claude Code process that keeps the conversation in memory between the answers of one run. */
export class LiveSession {
  /** False if the process has failed, or has continued on its own. The conversation then needs another process. */
  isUsable = true;
  readonly #options: Conversation["options"];
  readonly #names: ReadonlyMap<string, string>;
  readonly #inbox = new Inbox();
  readonly #results = new Map<string, Deferred<ToolResult>>();
  readonly #query: Query;
  readonly #reading: Promise<void>;
  #spawned: SdkProcess | null = null;
  #turn: { deferred: Deferred<GenerateResult>; onText: TurnOptions["onText"] } | null = null;
  #answer = new StreamedAnswer();
  #failure: SdkFailure | null = null;
  /** The last answer and the length of the conversation, by which `canContinue` recognizes it. */
  #lastAnswer: Part[] | null = null;
  #length = 0;
  /** Whether the loop has submitted the results of the current calls. */
  #hasResults = false;
  #costUsd = 0;

  /** Starts a process with the conversation up to the message to answer. */
  constructor({ options, messages }: Conversation, host: SessionHost) {
    this.#options = options;
    this.#names = new Map(options.tools.map(({ name }) => [toFullName(name), name]));
    const history = messages.at(-1)?.role === "tool" ? messages : messages.slice(0, -1);
    const id = randomUUID();
    this.#query = host.sdk.query({
      prompt: this.#inbox,
      options: {
        cwd: host.workDirectory,
        env: host.env,
        model: options.model,
        ...(options.system_prompt === null ? {} : { systemPrompt: options.system_prompt }),
        // Turn off Claude Code's own features: tools, settings, and commands or files in prompts.
        tools: [],
        settingSources: [],
        strictMcpConfig: true,
        verbatimPrompts: true,
        mcpServers: { drover: { type: "sdk", name: "drover", instance: this.#createToolServer() } },
        allowedTools: [toFullName("*")],
        permissionMode: "dontAsk",
        // Stop after calls that Claude Code rejected on its own, so that the loop can answer them.
        hooks: { PostToolBatch: [{ hooks: [async () => ({ continue: this.#hasResults })] }] },
        includePartialMessages: true,
        spawnClaudeCodeProcess: (request: SpawnRequest) => this.#spawn(request, host.start),
        ...(history.length === 0
          ? { persistSession: false }
          : {
              resume: id,
              sessionStore: {
                load: async () => toTranscript(id, history, host.workDirectory),
                // The caller saves the conversation.
                append: async () => undefined,
              },
            }),
      },
    });
    this.#reading = this.#read();
  }

  /** Reports whether this process has the whole conversation except its last message. */
  canContinue({ options, messages }: Conversation): boolean {
    const previous = messages.length === this.#length + 1 ? messages.at(-2) : undefined;
    return (
      this.isUsable &&
      options === this.#options &&
      previous?.role === "assistant" &&
      previous.parts === this.#lastAnswer
    );
  }

  async generate({ messages }: Conversation, { signal, onText }: TurnOptions): Promise<GenerateResult> {
    const message = messages.at(-1)!;
    this.#length = messages.length + 1;
    const deferred = defer<GenerateResult>();
    this.#turn = { deferred, onText };
    if (signal.aborted) this.#fail(cancelled);
    else if (!this.isUsable) this.#fail(toProgramFault("it exited between two answers"));
    const onAbort = (): void => this.#fail(cancelled);
    signal.addEventListener("abort", onAbort, { once: true });
    const hasAnswered = this.#lastAnswer !== null;
    if (message.role === "user") this.#inbox.add(message.text);
    else if (message.role === "tool" && hasAnswered) {
      this.#hasResults = true;
      for (const result of message.results) this.#deferredResult(result.tool_use_id).resolve(result);
    } else this.#inbox.add(continuation);
    const result = await deferred.promise;
    signal.removeEventListener("abort", onAbort);
    return result;
  }

  /** Kills the process. If it were only closed, it would make another request after an interrupted tool call. */
  async close(): Promise<void> {
    this.#fail(cancelled);
    this.#spawned?.kill();
    await this.#spawned?.ended;
    this.#query.close();
    await this.#reading;
  }

  #spawn(request: SpawnRequest, start: ProviderHost["start"]): SdkProcess {
    if (!this.isUsable) throw new Error("The session was closed before its program was started.");
    this.#spawned = new SdkProcess(request, start);
    return this.#spawned;
  }

  /**
   * Serves the tools over MCP. A call waits until the loop submits its result. Uses the low-level server, which passes
   * on JSON Schemas unchanged.
   */
  #createToolServer(): Server {
    const server = new Server({ name: "drover", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: this.#options.tools.map(({ name, description, input_schema }) => ({
        name: toWireName(name),
        description,
        inputSchema: { ...input_schema, type: "object" as const },
        // Claude Code makes read-only calls concurrently, others one at a time.
        annotations: { readOnlyHint: true },
        _meta: { "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": maxResultCharacters },
      })),
    }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const { output, is_error } = await this.#deferredResult(String(params._meta?.["claudecode/toolUseId"])).promise;
      return { content: [{ type: "text" as const, text: output }], isError: is_error };
    });
    return server;
  }

  #deferredResult(tool_use_id: string): Deferred<ToolResult> {
    const deferred = this.#results.get(tool_use_id) ?? defer<ToolResult>();
    this.#results.set(tool_use_id, deferred);
    return deferred;
  }

  async #read(): Promise<void> {
    try {
      for await (const message of this.#query) if (message.parent_tool_use_id == null) this.#receive(message);
      this.#fail(toProgramFault("it exited without an answer"));
    } catch (error) {
      this.#fail(this.#failure ? toProviderFault(this.#failure) : toProgramFault(error));
    }
  }

  #receive(message: SdkMessage): void {
    switch (message.type) {
      case "stream_event":
        this.#receiveEvent(message.event);
        break;
      case "assistant":
        if (message.error !== undefined)
          this.#failure = {
            kind: message.error,
            status: null,
            text: message.message.content.map(({ text }) => text ?? "").join(""),
          };
        break;
      case "system":
        // Fail instead of letting Claude Code retry, because Drover could not record that.
        if (message.subtype === "api_retry")
          this.#fail(
            toProviderFault({
              kind: message.error,
              status: message.error_status,
              text: `${message.error_status ?? "connection failed"}: ${message.error ?? "unknown"}`,
              retryAfterMs: message.retry_delay_ms,
            }),
          );
        break;
      case "result":
        this.#receiveResult(message);
        break;
      default:
    }
  }

  #receiveEvent(event: Extract<SdkMessage, { type: "stream_event" }>["event"]): void {
    if (event.type === "message_start") {
      this.#answer = new StreamedAnswer();
      this.#hasResults = false;
    }
    const text = this.#answer.add(event);
    if (text !== "") this.#turn?.onText?.(text);
    const { stopReason } = this.#answer;
    // After a normal end, the result follows, with the cost.
    if (event.type !== "message_stop" || stopReason === "end_turn" || stopReason === "stop_sequence") return;
    // Without a stop reason the answer was cut off, and a later message gives the reason.
    if (stopReason !== null) this.#finish(null);
  }

  #receiveResult(result: Extract<SdkMessage, { type: "result" }>): void {
    if (result.is_error || this.#failure)
      return this.#fail(
        toProviderFault({
          kind: this.#failure?.kind,
          status: result.api_error_status,
          text: result.result ?? result.errors?.join("; ") ?? this.#failure?.text ?? "no message",
        }),
      );
    if (this.#answer.stopReason === null) return this.#fail(toUnusableAnswerFault(providerInfo, "it was cut off"));
    // The total covers all requests of this process.
    const cost = result.total_cost_usd - this.#costUsd;
    this.#costUsd = result.total_cost_usd;
    this.#finish(cost);
  }

  #finish(costUsd: number | null): void {
    const { stopReason } = this.#answer;
    const parts = this.#answer.parts(this.#names);
    this.#lastAnswer = parts;
    // By itself, Claude Code continues after an answer that is too long, and answers calls that it rejects.
    const isWaiting = stopReason === "tool_use" && parts.every((part) => this.#isCallable(part));
    if (costUsd === null && !isWaiting) this.isUsable = false;
    const stop = stopReason === "max_tokens" ? "length" : stopReason === "refusal" ? "refused" : "end";
    this.#settle({ ok: true, parts, usage: this.#answer.usage(costUsd), stop });
    this.#answer = new StreamedAnswer();
    if (!this.isUsable) this.#spawned?.kill();
  }

  #isCallable(part: Part): boolean {
    return part.type !== "tool_use" || (part.fault === undefined && this.#names.has(toFullName(part.name)));
  }

  #fail(error: Extract<GenerateResult, { ok: false }>["error"]): void {
    this.isUsable = false;
    this.#settle({ ok: false, error });
  }

  #settle(result: GenerateResult): void {
    this.#turn?.deferred.resolve(result);
    this.#turn = null;
  }
}
