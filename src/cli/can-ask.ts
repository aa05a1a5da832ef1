import { isTerminal } from "./io.ts";
import { type CommandInput, usageError } from "./options.ts";

/** Whether a person at a terminal can answer a prompt. */
export function canAsk({ options }: Pick<CommandInput, "options">): boolean {
  const { detach, json, quiet, "no-input": noInput } = options;
  return isTerminal(0) && isTerminal(2) && !detach && !json && !quiet && !noInput;
}

/** Reads whether the questions of a run go to people. Returns an empty object if the agent's definition decides. */
export function readAttended(input: Pick<CommandInput, "options">): { attended?: boolean } {
  const { attended, "no-attended": unattended } = input.options;
  if (attended && unattended)
    throw usageError("--attended and --no-attended cannot be used together.", "run", "--attended");
  if (attended || unattended) return { attended: attended === true };
  return canAsk(input) ? { attended: true } : {};
}
