import type { Part } from "../conversation.ts";
import { parseInput } from "../tool-input.ts";
import type { Block, Delta, StreamEvent, TokenCounts } from "./sdk.ts";

type OpenBlock = Block & { json?: string };

/** Assembles one streamed answer. */
export class StreamedAnswer {
  stopReason: string | null = null;
  readonly #blocks: OpenBlock[] = [];
  #counts: TokenCounts = {};

  /** Returns the text that the event adds. */
  add(event: StreamEvent): string {
    switch (event.type) {
      case "message_start":
        this.#counts = event.message.usage;
        return "";
      case "content_block_start":
        this.#blocks[event.index] = { ...event.content_block };
        return "";
      case "content_block_delta":
        return applyDelta(this.#blocks[event.index], event.delta);
      case "message_delta":
        this.stopReason = event.delta.stop_reason;
        this.#counts = { ...this.#counts, ...event.usage };
        return "";
      default:
        return "";
    }
  }

  /** `names` maps the model's tool names to Drover's. */
  parts(names: ReadonlyMap<string, string>): Part[] {
    return this.#blocks.flatMap((block): Part[] => {
      switch (block.type) {
        case "text":
          return [{ type: "text", text: block.text }];
        case "thinking":
          return [{ type: "reasoning", text: block.thinking, meta: { anthropic: { signature: block.signature } } }];
        case "redacted_thinking":
          return [{ type: "reasoning", text: "", meta: { anthropic: { redactedData: block.data } } }];
        case "tool_use": {
          const name = names.get(block.name) ?? block.name;
          return [{ type: "tool_use", tool_use_id: block.id, name, ...parseInput(block.json ?? "") }];
        }
        default:
          return [];
      }
    });
  }

  usage(cost_usd: number | null) {
    const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = this.#counts;
    return {
      input_tokens: (input_tokens ?? 0) + (cache_creation_input_tokens ?? 0) + (cache_read_input_tokens ?? 0),
      output_tokens: output_tokens ?? 0,
      cost_usd,
    };
  }
}

function applyDelta(block: OpenBlock | undefined, delta: Delta): string {
  if (delta.type === "text_delta" && block?.type === "text") {
    block.text += delta.text;
    return delta.text;
  }
  if (delta.type === "thinking_delta" && block?.type === "thinking") block.thinking += delta.thinking;
  if (delta.type === "signature_delta" && block?.type === "thinking") block.signature = delta.signature;
  if (delta.type === "input_json_delta" && block) block.json = (block.json ?? "") + delta.partial_json;
  return "";
}
