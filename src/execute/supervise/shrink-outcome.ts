import type { Outcome } from "../../model/executor.ts";
import { findExceededLimit, maxJson } from "../../model/json-limits.ts";

/** With the last events it has to fit into one report. */
const maxOutcomeBytes = 17 * 1024 * 1024;
/** Around it in a report there are some names, values and levels more. */
const heaviestOutcome = { depth: maxJson.depth - 8, values: maxJson.values - 100_000, names: maxJson.names - 6000 };
/** Of its text, where that alone is too much. */
const maxTextLength = 2 * 1024 * 1024;

/** What a report can carry of it; null: all of it. */
export function shrinkOutcome(outcome: Outcome): Outcome | null {
  if (outcome.status !== "completed" && outcome.status !== "failed") return null;
  if (fits(outcome)) return null;
  const { data: _data, ...rest } = outcome;
  if (fits(rest)) return rest;
  if (rest.status === "completed") return { ...rest, text: rest.text === null ? null : cut(rest.text) };
  const { text, ...failed } = rest;
  return { ...failed, message: cut(failed.message), ...(text === undefined ? {} : { text: cut(text) }) };
}

function fits(outcome: Outcome): boolean {
  const json = Buffer.from(JSON.stringify(outcome));
  return json.length <= maxOutcomeBytes && findExceededLimit(json, heaviestOutcome) === null;
}

function cut(text: string): string {
  // not in the middle of a pair of surrogates
  return text.slice(0, maxTextLength).replace(/[\ud800-\udbff]$/, "");
}
