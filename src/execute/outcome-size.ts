import type { Outcome } from "../model/executor.ts";

/** With the last events it has to fit into one report. */
const maxOutcomeBytes = 17 * 1024 * 1024;

/** null: it is as it may be. */
export function withoutLargeData(outcome: Outcome): Outcome | null {
  if (outcome.status !== "completed" && outcome.status !== "failed") return null;
  if (outcome.data === undefined || Buffer.byteLength(JSON.stringify(outcome)) <= maxOutcomeBytes) return null;
  const { data: _data, ...rest } = outcome;
  return rest;
}
