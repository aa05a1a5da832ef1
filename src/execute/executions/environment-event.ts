import type { RunEvent } from "../../model/event.ts";
import type { StartOptions } from "../../model/process.ts";
import { looksSecret } from "../../model/secret-names.ts";
import { buildEnvironment } from "../../process/environment.ts";

/**
 * Returns an event that lists the variables that the run gets besides the base list, and the secrets that are withheld.
 * Contains only names, no values.
 */
export function buildEnvironmentEvent({
  environment,
  parentEnvironment,
}: Pick<StartOptions, "environment" | "parentEnvironment">): RunEvent {
  const parent = parentEnvironment ?? process.env;
  const base = buildEnvironment({ options: { mode: "merge" }, parent }).environment;
  const all = buildEnvironment({ options: environment, parent }).environment;
  const names = Object.keys(parent)
    .filter((name) => parent[name] !== undefined)
    .sort();
  return {
    type: "system",
    subtype: "environment",
    data: {
      passed: names.filter((name) => name in all && !(name in base)),
      withheld: names.filter((name) => !(name in all) && (looksSecret(name) || clientVariables.test(name))),
    },
  };
}

/** Variables that configure common agent clients. */
const clientVariables = /^(?:ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE)_/;
