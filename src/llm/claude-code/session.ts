import { randomUUID } from "node:crypto";
import { Server } from "@modelcontextprotocol/server";
import type { ToolResult, TurnOptions } from "../../model/provider.ts";
import type { Conversation, Generated, Part } from "../conversation.ts";
import type { ProviderHost } from "../definition.ts";
import { cancelled, unusable } from "../faults.ts";
import { StreamedAnswer } from "./answer.ts";
import { type Deferred, defer } from "./deferred.ts";
import { faultOf, programFault, type SdkFailure, setup } from "./faults.ts";
import { Inbox } from "./inbox.ts";
import type { AgentSdk, Query, SdkMessage, SpawnRequest } from "./sdk.ts";
import { Spawned } from "./spawned.ts";
import { continuation, fullName, transcriptOf, wireName } from "./transcript.ts";

export interface SessionHost extends Pick<ProviderHost, "start" | "workDirectory"> {
  sdk: AgentSdk;
  env: Readonly<Record<string, string>>;
}

/** The most that Claude Code takes over from a tool; of more it shows the model a part. */
const longestResult = 500_000;

/** One process of Claude Code that holds a conversation, between the answers of one run. */
export class LiveSession {
  /** False once it has failed, or has gone on without us: the conversation needs another process. */
  usable = true;
  readonly #options: Conversation["options"];
  readonly #names: ReadonlyMap<string, string>;
  readonly #inbox = new Inbox();
  readonly #results = new Map<string, Deferred<ToolResult>>();
  readonly #query: Query;
  readonly #reading: Promise<void>;
  #spawned: Spawned | null = null;
  #turn: { deferred: Deferred<Generated>; onText: TurnOptions["onText"] } | null = null;
  #answer = new StreamedAnswer();
  #failure: SdkFailure | null = null;
  /** Its last answer and where that stands: by these we know a conversation again. */
  #last: Part[] | null = null;
  #length = 0;
  /** Whether the results of the calls it has made are ours. */
  #submitted = false;
  #costUsd = 0;

  /** With everything said before the message that is to be answered. */
  constructor({ options, messages }: Conversation, host: SessionHost) {
    this.#options = options;
    this.#names = new Map(options.tools.map(({ name }) => [fullName(name), name]));
    const history = messages.at(-1)?.role === "tool" ? messages : messages.slice(0, -1);
    const id = randomUUID();
    this.#query = host.sdk.query({
      prompt: this.#inbox,
      options: {
        cwd: host.workDirectory,
        env: host.env,
        model: options.model,
        ...(options.system_prompt === null ? {} : { systemPrompt: options.system_prompt }),
        // nothing of its own: no tools, no settings, no commands or files in prompts
        tools: [],
        settingSources: [],
        strictMcpConfig: true,
        verbatimPrompts: true,
        mcpServers: { drover: { type: "sdk", name: "drover", instance: this.#toolServer() } },
        allowedTools: [fullName("*")],
        permissionMode: "dontAsk",
        // calls that it answered by itself, as it could not make sense of them, are for the loop to answer
        hooks: { PostToolBatch: [{ hooks: [async () => ({ continue: this.#submitted })] }] },
        includePartialMessages: true,
        spawnClaudeCodeProcess: (request: SpawnRequest) => this.#spawn(request, host.start),
        ...(history.length === 0
          ? { persistSession: false }
          : {
              resume: id,
              sessionStore: {
                load: async () => transcriptOf(id, history, host.workDirectory),
                // the conversation is kept by whoever asks us
                append: async () => undefined,
              },
            }),
      },
    });
    this.#reading = this.#read();
  }

  /** Whether this process knows everything but the last message of a conversation. */
  knows({ options, messages }: Conversation): boolean {
    const before = messages.length === this.#length + 1 ? messages.at(-2) : undefined;
    return this.usable && options === this.#options && before?.role === "assistant" && before.parts === this.#last;
  }

  async answer({ messages }: Conversation, { signal, onText }: TurnOptions): Promise<Generated> {
    const message = messages.at(-1)!;
    this.#length = messages.length + 1;
    const deferred = defer<Generated>();
    this.#turn = { deferred, onText };
    if (signal.aborted) this.#fail(cancelled);
    else if (!this.usable) this.#fail(programFault("it ended between two answers"));
    const cancel = (): void => this.#fail(cancelled);
    signal.addEventListener("abort", cancel, { once: true });
    const isKnown = this.#last !== null;
    if (message.role === "user") this.#inbox.add(message.text);
    else if (message.role === "tool" && isKnown) {
      this.#submitted = true;
      for (const result of message.results) this.#resultOf(result.tool_use_id).resolve(result);
    } else this.#inbox.add(continuation);
    const generated = await deferred.promise;
    signal.removeEventListener("abort", cancel);
    return generated;
  }

  /** Killed, not closed: a process whose tool call is cut off would ask the model what to do next. */
  async close(): Promise<void> {
    this.#fail(cancelled);
    this.#spawned?.kill();
    await this.#spawned?.ended;
    this.#query.close();
    await this.#reading;
  }

  #spawn(request: SpawnRequest, start: ProviderHost["start"]): Spawned {
    if (!this.usable) throw new Error("The session was closed before it began.");
    this.#spawned = new Spawned(request, start);
    return this.#spawned;
  }

  /** The low-level server: it passes JSON Schemas on as they are. A call waits until its result is submitted. */
  #toolServer(): Server {
    const server = new Server({ name: "drover", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: this.#options.tools.map(({ name, description, input_schema }) => ({
        name: wireName(name),
        description,
        inputSchema: { ...input_schema, type: "object" as const },
        // calls that are said to only read are handed over at once, the others one by one
        annotations: { readOnlyHint: true },
        _meta: { "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": longestResult },
      })),
    }));
    server.setRequestHandler("tools/call", async ({ params }) => {
      const { output, is_error } = await this.#resultOf(String(params._meta?.["claudecode/toolUseId"])).promise;
      return { content: [{ type: "text" as const, text: output }], isError: is_error };
    });
    return server;
  }

  #resultOf(tool_use_id: string): Deferred<ToolResult> {
    const known = this.#results.get(tool_use_id) ?? defer<ToolResult>();
    this.#results.set(tool_use_id, known);
    return known;
  }

  async #read(): Promise<void> {
    try {
      for await (const message of this.#query) if (message.parent_tool_use_id == null) this.#take(message);
      this.#fail(programFault("it ended without an answer"));
    } catch (error) {
      this.#fail(this.#failure ? faultOf(this.#failure) : programFault(error));
    }
  }

  #take(message: SdkMessage): void {
    switch (message.type) {
      case "stream_event":
        this.#takeEvent(message.event);
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
        // it would try again by itself, out of sight
        if (message.subtype === "api_retry")
          this.#fail(
            faultOf({
              kind: message.error,
              status: message.error_status,
              text: `${message.error_status ?? "connection failed"}: ${message.error ?? "unknown"}`,
              retryMs: message.retry_delay_ms,
            }),
          );
        break;
      case "result":
        this.#takeResult(message);
        break;
      default:
    }
  }

  #takeEvent(event: Extract<SdkMessage, { type: "stream_event" }>["event"]): void {
    if (event.type === "message_start") {
      this.#answer = new StreamedAnswer();
      this.#submitted = false;
    }
    const text = this.#answer.take(event);
    if (text !== "") this.#turn?.onText?.(text);
    const { stopReason } = this.#answer;
    // after a plain end the result follows, with its cost
    if (event.type !== "message_stop" || stopReason === "end_turn" || stopReason === "stop_sequence") return;
    // without a reason it broke off, and what follows says why
    if (stopReason !== null) this.#finish(null);
  }

  #takeResult(result: Extract<SdkMessage, { type: "result" }>): void {
    if (result.is_error || this.#failure)
      return this.#fail(
        faultOf({
          kind: this.#failure?.kind,
          status: result.api_error_status,
          text: result.result ?? result.errors?.join("; ") ?? this.#failure?.text ?? "no message",
        }),
      );
    if (this.#answer.stopReason === null) return this.#fail(unusable(setup, "it ended before its end mark"));
    // the sum of everything this process has asked for
    const cost = result.total_cost_usd - this.#costUsd;
    this.#costUsd = result.total_cost_usd;
    this.#finish(cost);
  }

  #finish(costUsd: number | null): void {
    const { stopReason } = this.#answer;
    const parts = this.#answer.parts(this.#names);
    this.#last = parts;
    // It continues on its own after an answer that is too long, and answers calls it cannot make sense of.
    const isWaiting = stopReason === "tool_use" && parts.every((part) => this.#isCallable(part));
    if (costUsd === null && !isWaiting) this.usable = false;
    const stop = stopReason === "max_tokens" ? "length" : stopReason === "refusal" ? "refused" : "end";
    this.#settle({ ok: true, parts, usage: this.#answer.usage(costUsd), stop });
    this.#answer = new StreamedAnswer();
    if (!this.usable) this.#spawned?.kill();
  }

  #isCallable(part: Part): boolean {
    return part.type !== "tool_use" || (part.fault === undefined && this.#names.has(fullName(part.name)));
  }

  #fail(error: Extract<Generated, { ok: false }>["error"]): void {
    this.usable = false;
    this.#settle({ ok: false, error });
  }

  #settle(generated: Generated): void {
    this.#turn?.deferred.resolve(generated);
    this.#turn = null;
  }
}
