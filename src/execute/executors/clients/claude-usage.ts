import type { Usage } from "../../../model/event.ts";
import { type Fields, toFields, toNumber } from "./fields.ts";

/**
 * Reports usage in increments that add up to the total. An answer's tokens are reported when it finishes. Its cost, and
 * the usage of subagents, are reported only in the result.
 */
export function createUsageMeter() {
  const reported = { input_tokens: 0, output_tokens: 0, cost_usd: 0 };
  let startUsage: Fields = {};
  return {
    /** Adds an event of a streamed answer. Returns the answer's usage when it finishes. */
    addEvent(event: Fields): Usage | null {
      if (event["type"] === "message_start") startUsage = toFields(toFields(event["message"])["usage"]);
      if (event["type"] !== "message_delta") return null;
      const answerUsage = { ...startUsage, ...toFields(event["usage"]) };
      const input_tokens = sumFields(answerUsage, [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
      ]);
      const output_tokens = sumFields(answerUsage, ["output_tokens"]);
      reported.input_tokens += input_tokens;
      reported.output_tokens += output_tokens;
      return { input_tokens, output_tokens, cost_usd: null };
    },
    /** Adds the cost since the last result. Returns the increase since the previous call. */
    addCost(sinceResult: number): Usage | null {
      const cost_usd = sinceResult - reported.cost_usd;
      if (cost_usd <= 0) return null;
      reported.cost_usd = sinceResult;
      return { input_tokens: 0, output_tokens: 0, cost_usd };
    },
    /**
     * Adds a result. Returns the usage since the previous result, minus what was already reported. Other totals in the
     * result cover the whole session.
     */
    addResult(result: Fields): Usage | null {
      const models = Object.values(toFields(result["model_usage_since_last_result"] ?? result["modelUsage"])).map(
        toFields,
      );
      if (models.length === 0) return null;
      const total = (...names: readonly string[]): number =>
        models.reduce((sum, model) => sum + sumFields(model, names), 0);
      const input_tokens =
        total("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens") - reported.input_tokens;
      const output_tokens = total("outputTokens") - reported.output_tokens;
      const cost_usd = total("costUSD") - reported.cost_usd;
      Object.assign(reported, { input_tokens: 0, output_tokens: 0, cost_usd: 0 });
      return {
        input_tokens: Math.max(0, input_tokens),
        output_tokens: Math.max(0, output_tokens),
        cost_usd: Math.max(0, cost_usd),
      };
    },
  };
}

function sumFields(fields: Fields, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (toNumber(fields[name]) ?? 0), 0);
}
