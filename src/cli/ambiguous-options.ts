import type { Agent } from "../model/agent.ts";
import { execOptions } from "./exec-options.ts";
import type { CommandInput } from "./options.ts";
import { findProperty } from "./parameter-types.ts";

/**
 * Returns warnings about options that the user may have meant differently, because options and parameters look alike. A
 * command that starts a run passes an option of `drover exec` to the agent as a parameter, and reads a parameter with the
 * name of one of its own options as that option.
 */
export function findAmbiguousOptions(
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
          `--${name} is an option of drover exec, not of drover ${command}. It is passed to the agent as the parameter ${name}.`,
      ),
    ...Object.keys(options)
      .filter((name) => findProperty(schema, name) !== undefined)
      .map(
        (name) =>
          `--${name} is read as an option of drover ${command}. Use --params to set the agent's parameter of that name.`,
      ),
  ];
}
