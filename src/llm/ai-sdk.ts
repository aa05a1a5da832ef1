import type {
  LanguageModelV3,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { TurnOptions } from "../model/provider.ts";
import type { Conversation, Generate, Generated, Message, Part } from "./conversation.ts";
import { faultOf, type Setup, unusableAnswer } from "./faults.ts";
import { readInput } from "./tool-input.ts";

export interface Vendor extends Setup {
  model(name: string): LanguageModelV3;
  providerOptions?: SharedV3ProviderOptions;
}

/** Generates the next answer with a vendor's low-level model. It does not retry: the loop's retries are recorded. */
export function generateWith(vendor: Vendor): Generate {
  return async (conversation, options) => {
    try {
      return await generate(vendor, conversation, options);
    } catch (error) {
      return { ok: false, error: faultOf(error, vendor, options.signal) };
    }
  };
}

async function generate(
  vendor: Vendor,
  conversation: Conversation,
  { signal, onText }: TurnOptions,
): Promise<Generated> {
  signal.throwIfAborted();
  const { model, tools, max_tokens } = conversation.options;
  const { stream } = await vendor.model(model).doStream({
    prompt: promptOf(conversation),
    abortSignal: signal,
    tools: tools.map(({ name, description, input_schema }) => ({
      type: "function",
      name: wireName(name),
      description,
      inputSchema: input_schema,
    })),
    ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
    ...(vendor.providerOptions === undefined ? {} : { providerOptions: vendor.providerOptions }),
  });
  const answer = new Answer(new Map(tools.map(({ name }) => [wireName(name), name])));
  for await (const part of stream) {
    // An error is final even if the adapter then finishes: a malformed chunk leaves a gap in the text.
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") onText?.(part.delta);
    answer.add(part);
  }
  signal.throwIfAborted();
  const { finish } = answer;
  // Without a finish reason the answer was cut off, even if the connection was closed cleanly.
  if (
    !finish ||
    finish.reason.unified === "error" ||
    (finish.reason.unified === "other" && finish.reason.raw === undefined)
  )
    return { ok: false, error: unusableAnswer(vendor, "it was cut off") };
  const { inputTokens, outputTokens } = finish.usage;
  return {
    ok: true,
    parts: answer.parts,
    usage: { input_tokens: inputTokens.total ?? 0, output_tokens: outputTokens.total ?? 0, cost_usd: null },
    stop: stopOf(finish.reason),
  };
}

function stopOf({ unified }: Finish["finishReason"]): "end" | "length" | "refused" {
  if (unified === "length") return "length";
  return unified === "content-filter" ? "refused" : "end";
}

type Finish = Extract<LanguageModelV3StreamPart, { type: "finish" }>;

/** Assembles the parts of a stream. */
class Answer {
  readonly parts: Part[] = [];
  finish: { reason: Finish["finishReason"]; usage: Finish["usage"] } | null = null;
  readonly #open = new Map<string, Extract<Part, { type: "text" | "reasoning" }>>();
  readonly #names: ReadonlyMap<string, string>;

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = names;
  }

  add(part: LanguageModelV3StreamPart): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#start(part.type === "text-start" ? "text" : "reasoning", part.id, part.providerMetadata);
        break;
      case "text-delta":
      case "reasoning-delta": {
        const open = this.#open.get(part.id);
        if (open) open.text += part.delta;
        this.#setMeta(part.id, part.providerMetadata);
        break;
      }
      case "text-end":
      case "reasoning-end":
        // signatures of reasoning arrive here, and the model expects them back
        this.#setMeta(part.id, part.providerMetadata);
        break;
      case "tool-call":
        this.parts.push({
          type: "tool_use",
          tool_use_id: part.toolCallId,
          name: this.#names.get(part.toolName) ?? part.toolName,
          ...readInput(part.input),
          ...metaOf(part.providerMetadata),
        });
        break;
      case "finish":
        this.finish = { reason: part.finishReason, usage: part.usage };
        break;
      default: // sources, files and warnings are not used
    }
  }

  #start(type: "text" | "reasoning", id: string, meta: unknown): void {
    const part = { type, text: "", ...metaOf(meta) };
    this.#open.set(id, part);
    this.parts.push(part);
  }

  #setMeta(id: string, meta: unknown): void {
    const open = this.#open.get(id);
    if (open && meta !== undefined) open.meta = meta;
  }
}

function metaOf(meta: unknown): { meta?: unknown } {
  return meta === undefined ? {} : { meta };
}

function promptOf({ options, messages }: Conversation): LanguageModelV3Prompt {
  const names = new Map<string, string>();
  const prompt: LanguageModelV3Prompt =
    options.system_prompt === null ? [] : [{ role: "system", content: options.system_prompt }];
  for (const message of messages) {
    if (message.role === "assistant")
      for (const part of message.parts) if (part.type === "tool_use") names.set(part.tool_use_id, wireName(part.name));
    prompt.push(wireMessage(message, names));
  }
  return prompt;
}

function wireMessage(message: Message, names: ReadonlyMap<string, string>): LanguageModelV3Prompt[number] {
  switch (message.role) {
    case "user":
      return { role: "user", content: [{ type: "text", text: message.text }] };
    case "assistant":
      return { role: "assistant", content: message.parts.map(wirePart) };
    case "tool":
      return {
        role: "tool",
        content: message.results.map(({ tool_use_id, output, is_error }) => ({
          type: "tool-result",
          toolCallId: tool_use_id,
          toolName: names.get(tool_use_id) ?? "unknown",
          output: { type: is_error ? "error-text" : "text", value: output },
        })),
      };
  }
}

function wirePart(part: Part) {
  // send the vendor's own metadata back unchanged
  const own = part.meta === undefined ? {} : { providerOptions: part.meta as SharedV3ProviderOptions };
  if (part.type !== "tool_use") return { type: part.type, text: part.text, ...own };
  const input = part.fault === undefined ? part.input : {};
  return { type: "tool-call" as const, toolCallId: part.tool_use_id, toolName: wireName(part.name), input, ...own };
}

/** Model services allow no dots in tool names. */
function wireName(name: string): string {
  return name.replaceAll(".", "_");
}
