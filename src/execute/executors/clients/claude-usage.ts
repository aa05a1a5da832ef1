import type { Usage } from "../../../model/event.ts";
import { type Fields, fieldsOf, numberOf } from "./fields.ts";

/**
 * What each answer used, in steps that add up to the whole. The tokens of an answer are known when it ends; its cost,
 * and what helpers of the agent used, when the result says so.
 */
export function createUsageSteps() {
  const told = { input_tokens: 0, output_tokens: 0, cost_usd: 0 };
  let asked: Fields = {};
  return {
    /** For an event of a streamed answer. */
    ofEvent(event: Fields): Usage | null {
      if (event["type"] === "message_start") asked = fieldsOf(fieldsOf(event["message"])["usage"]);
      if (event["type"] !== "message_delta") return null;
      const used = { ...asked, ...fieldsOf(event["usage"]) };
      const input_tokens = sumOf(used, ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]);
      const output_tokens = sumOf(used, ["output_tokens"]);
      told.input_tokens += input_tokens;
      told.output_tokens += output_tokens;
      return { input_tokens, output_tokens, cost_usd: null };
    },
    /** For a client that says what it has cost since its last result. */
    ofCost(sinceResult: number): Usage | null {
      const cost_usd = sinceResult - told.cost_usd;
      if (cost_usd <= 0) return null;
      told.cost_usd = sinceResult;
      return { input_tokens: 0, output_tokens: 0, cost_usd };
    },
    /** The rest of what was used since the result before. The other sums of a result go over the whole session. */
    ofResult(result: Fields): Usage | null {
      const models = Object.values(fieldsOf(result["model_usage_since_last_result"] ?? result["modelUsage"])).map(
        fieldsOf,
      );
      if (models.length === 0) return null;
      const all = (...names: readonly string[]): number => models.reduce((sum, model) => sum + sumOf(model, names), 0);
      const input_tokens = all("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens") - told.input_tokens;
      const output_tokens = all("outputTokens") - told.output_tokens;
      const cost_usd = all("costUSD") - told.cost_usd;
      Object.assign(told, { input_tokens: 0, output_tokens: 0, cost_usd: 0 });
      return {
        input_tokens: Math.max(0, input_tokens),
        output_tokens: Math.max(0, output_tokens),
        cost_usd: Math.max(0, cost_usd),
      };
    },
  };
}

function sumOf(fields: Fields, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (numberOf(fields[name]) ?? 0), 0);
}
