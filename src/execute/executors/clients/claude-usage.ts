import type { Usage } from "../../../model/event.ts";
import { type Fields, fieldsOf, numberOf } from "./fields.ts";

/** What this turn used. The other sums of a result go over the whole session, its earlier turns included. */
export function usageOfResult(result: Fields): Usage | null {
  const models = Object.values(fieldsOf(result["model_usage_since_last_result"] ?? result["modelUsage"])).map(fieldsOf);
  if (models.length === 0) return null;
  const sum = (...names: readonly string[]): number =>
    models.reduce((all, model) => names.reduce((more, name) => more + (numberOf(model[name]) ?? 0), all), 0);
  return {
    input_tokens: sum("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
    output_tokens: sum("outputTokens"),
    cost_usd: sum("costUSD"),
  };
}

/** While it runs: the tokens of all requests so far, each known when its answer ends. The cost is known at the end. */
export function createRunningUsage() {
  const sum = { input_tokens: 0, output_tokens: 0 };
  let asked: Fields = {};
  return {
    note(event: Fields): Usage | null {
      if (event["type"] === "message_start") asked = fieldsOf(fieldsOf(event["message"])["usage"]);
      if (event["type"] !== "message_delta") return null;
      const used = { ...asked, ...fieldsOf(event["usage"]) };
      for (const name of ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"])
        sum.input_tokens += numberOf(used[name]) ?? 0;
      sum.output_tokens += numberOf(used["output_tokens"]) ?? 0;
      return { ...sum, cost_usd: null };
    },
  };
}
