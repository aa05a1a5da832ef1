import type { Outcome } from "../../model/executor.ts";
import { findExceededLimit, defaultJsonLimits } from "../../model/json-limits.ts";

/** The outcome and the last events have to fit into one report. */
const maxOutcomeBytes = 17 * 1024 * 1024;
/** Leaves room for the report around the outcome. */
const maxOutcomeJson = {
  depth: defaultJsonLimits.depth - 8,
  values: defaultJsonLimits.values - 100_000,
  names: defaultJsonLimits.names - 6000,
};
/** The text is truncated to this length if it alone is too large. */
const maxTextLength = 2 * 1024 * 1024;

/** Returns the outcome without the parts that do not fit into a report, or null if all of it fits. */
export function shrinkOutcome(outcome: Outcome): Outcome | null {
  if (outcome.status !== "completed" && outcome.status !== "failed") return null;
  if (fits(outcome)) return null;
  const { data: _data, ...rest } = outcome;
  if (fits(rest)) return rest;
  if (rest.status === "completed") return { ...rest, text: rest.text === null ? null : truncateText(rest.text) };
  const { text, ...failed } = rest;
  return {
    ...failed,
    message: truncateText(failed.message),
    ...(text === undefined ? {} : { text: truncateText(text) }),
  };
}

function fits(outcome: Outcome): boolean {
  const json = Buffer.from(JSON.stringify(outcome));
  return json.length <= maxOutcomeBytes && findExceededLimit(json, maxOutcomeJson) === null;
}

function truncateText(text: string): string {
  // Do not split a surrogate pair.
  return text.slice(0, maxTextLength).replace(/[\ud800-\udbff]$/, "");
}
