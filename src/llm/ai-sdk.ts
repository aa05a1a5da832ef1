import type {
  LanguageModelV3,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { TurnOptions } from "../model/provider.ts";
import type { Conversation, Generate, GenerateResult, Message, Part } from "./conversation.ts";
import { toProviderFault, type ProviderInfo, toUnusableAnswerFault } from "./faults.ts";
import { parseInput } from "./tool-input.ts";

export interface ModelService extends ProviderInfo {
  model(name: string): LanguageModelV3;
  providerOptions?: SharedV3ProviderOptions;
}

/**
 * Generates the next answer through the AI SDK's low-level interface to a model service. Does not retry, because the agent loop retries and records
 * each retry.
 */
export function generateWith(service: ModelService): Generate {
  return async (conversation, options) => {
    try {
      return await generate(service, conversation, options);
    } catch (error) {
      return { ok: false, error: toProviderFault(error, service, options.signal) };
    }
  };
}

async function generate(
  service: ModelService,
  conversation: Conversation,
  { signal, onText }: TurnOptions,
): Promise<GenerateResult> {
  signal.throwIfAborted();
  const { model, tools, max_tokens } = conversation.options;
  const { stream } = await service.model(model).doStream({
    prompt: toPrompt(conversation),
    abortSignal: signal,
    tools: tools.map(({ name, description, input_schema }) => ({
      type: "function",
      name: toWireName(name),
      description,
      inputSchema: input_schema,
    })),
    ...(max_tokens === undefined ? {} : { maxOutputTokens: max_tokens }),
    ...(service.providerOptions === undefined ? {} : { providerOptions: service.providerOptions }),
  });
  const answer = new Answer(new Map(tools.map(({ name }) => [toWireName(name), name])));
  // The abort must end this pipe too: if fetch is aborted when the end of a response has already arrived but was not read
  // yet, its stream neither ends nor fails (Node.js 20).
  const parts = stream.pipeThrough(new TransformStream<LanguageModelV3StreamPart, LanguageModelV3StreamPart>(), {
    signal,
  });
  for await (const part of parts) {
    // Fail even if the adapter continues after an error, because a malformed chunk leaves a gap in the text.
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
    return { ok: false, error: toUnusableAnswerFault(service, "it was cut off") };
  const { inputTokens, outputTokens } = finish.usage;
  return {
    ok: true,
    parts: answer.parts,
    usage: { input_tokens: inputTokens.total ?? 0, output_tokens: outputTokens.total ?? 0, cost_usd: null },
    stop: toFinishReason(finish.reason),
  };
}

function toFinishReason({ unified }: Finish["finishReason"]): "end" | "length" | "refused" {
  if (unified === "length") return "length";
  return unified === "content-filter" ? "refused" : "end";
}

type Finish = Extract<LanguageModelV3StreamPart, { type: "finish" }>;

/** Assembles an answer from the parts of a stream. */
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
        const openPart = this.#open.get(part.id);
        if (openPart) openPart.text += part.delta;
        this.#setMeta(part.id, part.providerMetadata);
        break;
      }
      case "text-end":
      case "reasoning-end":
        // Reasoning signatures arrive here, and the model expects them back.
        this.#setMeta(part.id, part.providerMetadata);
        break;
      case "tool-call":
        this.parts.push({
          type: "tool_use",
          tool_use_id: part.toolCallId,
          name: this.#names.get(part.toolName) ?? part.toolName,
          ...parseInput(part.input),
          ...optionalMeta(part.providerMetadata),
        });
        break;
      case "finish":
        this.finish = { reason: part.finishReason, usage: part.usage };
        break;
      default: // Sources, files and warnings are not used.
    }
  }

  #start(type: "text" | "reasoning", id: string, meta: unknown): void {
    const part = { type, text: "", ...optionalMeta(meta) };
    this.#open.set(id, part);
    this.parts.push(part);
  }

  #setMeta(id: string, meta: unknown): void {
    const openPart = this.#open.get(id);
    if (openPart && meta !== undefined) openPart.meta = meta;
  }
}

function optionalMeta(meta: unknown): { meta?: unknown } {
  return meta === undefined ? {} : { meta };
}

function toPrompt({ options, messages }: Conversation): LanguageModelV3Prompt {
  const names = new Map<string, string>();
  const prompt: LanguageModelV3Prompt =
    options.system_prompt === null ? [] : [{ role: "system", content: options.system_prompt }];
  for (const message of messages) {
    if (message.role === "assistant")
      for (const part of message.parts)
        if (part.type === "tool_use") names.set(part.tool_use_id, toWireName(part.name));
    prompt.push(toWireMessage(message, names));
  }
  return prompt;
}

function toWireMessage(message: Message, names: ReadonlyMap<string, string>): LanguageModelV3Prompt[number] {
  switch (message.role) {
    case "user":
      return { role: "user", content: [{ type: "text", text: message.text }] };
    case "assistant":
      return { role: "assistant", content: message.parts.map(toWirePart) };
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

function toWirePart(part: Part) {
  // Model services require their own metadata back unchanged.
  const metadata = part.meta === undefined ? {} : { providerOptions: part.meta as SharedV3ProviderOptions };
  if (part.type !== "tool_use") return { type: part.type, text: part.text, ...metadata };
  const input = part.fault === undefined ? part.input : {};
  return {
    type: "tool-call" as const,
    toolCallId: part.tool_use_id,
    toolName: toWireName(part.name),
    input,
    ...metadata,
  };
}

/** Model services do not allow dots in tool names. */
function toWireName(name: string): string {
  return name.replaceAll(".", "_");
}
