import { isTerminal } from "./io.ts";
import { type CommandInput, usage } from "./options.ts";

/** Whether somebody sits here who can be asked: what they would read and type is not piped elsewhere. */
export function canAsk({ options }: Pick<CommandInput, "options">): boolean {
  const { detach, json, quiet, "no-input": noInput } = options;
  return isTerminal(0) && isTerminal(2) && !detach && !json && !quiet && !noInput;
}

/** Whether the questions of a run go to people. Nothing where the agent's definition decides. */
export function attended(input: Pick<CommandInput, "options">): { attended?: boolean } {
  const { attended: yes, "no-attended": no } = input.options;
  if (yes && no) throw usage("--attended and --no-attended contradict each other.", "run", "--attended");
  if (yes || no) return { attended: yes === true };
  return canAsk(input) ? { attended: true } : {};
}
