import type { RunEvent } from "../../model/event.ts";
import type { StartOptions } from "../../model/process.ts";
import { looksSecret } from "../../model/secret-names.ts";
import { buildEnvironment } from "../../process/environment.ts";

/** Names alone: which variables the runs get beside the base list, and which a person may miss in them. */
export function environmentEvent({
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
      withheld: names.filter((name) => !(name in all) && (looksSecret(name) || ofClients.test(name))),
    },
  };
}

/** What the clients people have are set up by. */
const ofClients = /^(?:ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE)_/;
