import type { Agent } from "../model/agent.ts";
import { execOptions } from "./exec-options.ts";
import type { CommandInput } from "./options.ts";
import { findProperty } from "./parameter-types.ts";

/**
 * Options and an agent's parameters look alike, so a word may be taken otherwise than it was meant: an option of
 * `drover exec` is a parameter to the commands that begin a run, and a parameter with an option's name is that option.
 */
export function ambiguousOptions(
  { options, extraOptions }: Pick<CommandInput, "options" | "extraOptions">,
  schema: Agent["parameters_schema"],
  command: string,
): string[] {
  const names = [...new Set(extraOptions.map(([name]) => name))];
  return [
    ...names
      .filter((name) => Object.hasOwn(execOptions, name) && findProperty(schema, name) === undefined)
      .map(
        (name) =>
          `--${name} is an option of drover exec, not of drover ${command}: the agent gets it as its parameter ${name}.`,
      ),
    ...Object.keys(options)
      .filter((name) => findProperty(schema, name) !== undefined)
      .map(
        (name) =>
          `--${name} is taken as the option of drover ${command}: the agent's parameter of that name goes into --params.`,
      ),
  ];
}
