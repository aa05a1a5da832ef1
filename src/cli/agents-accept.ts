import { realpathSync } from "node:fs";
import { acceptHeld, type AgentGate, createAgentGate, isReadOnlyForUser, listHeld } from "../define/agent-gate.ts";
import { errorCode } from "../define/error-code.ts";
import { findLocal, type Local } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { tryWrite, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec, OptionSpec } from "./options.ts";

/** For the commands that start a coordinator or a runner. */
export const acceptOption: Record<string, OptionSpec> = {
  "accept-agents": { about: "use new and changed agent files immediately, even if a run wrote them" },
};

export const agentsAccept: CommandSpec = {
  name: "agents accept",
  summary: "accept agent definitions that were added or changed while Drover was serving",
  takes: "[NAME]",
  arity: [0, 1],
  examples: [
    ["drover agents accept", "accept all held definitions"],
    ["drover agents accept report", "accept one, in the version that was held"],
  ],
  options: {},
  run: accept,
};

async function accept(input: CommandInput): Promise<number> {
  const [name] = input.positionals;
  const { places } = await findLocal(input.env, input.cwd);
  const held = listHeld(places.stateDirectory).filter((each) => name === undefined || each.name === name);
  if (held.length === 0 && name !== undefined)
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "NAME",
      message: `No definition of ${name} is held in ${places.stateDirectory}.`,
      next: "Run `drover agents list` to see held definitions.",
    });
  for (const each of held) {
    acceptHeld(places.stateDirectory, each);
    if (input.options["json"]) write(1, jsonLine({ name: each.name, file: each.file }));
    else write(1, `accepted ${each.name} (${each.file})\n`);
  }
  if (held.length === 0 && !input.options["quiet"]) tryWrite(2, "No definitions are held.\n");
  return 0;
}

/** Prints the agent definitions held in this state directory, with the command that accepts each. */
export async function printHeldAgents({ env, cwd }: CommandInput): Promise<void> {
  const { places } = await findLocal(env, cwd);
  for (const { name, file } of listHeld(places.stateDirectory))
    tryWrite(2, `drover: held: ${name} (${file}). Review it, then accept it with: drover agents accept ${name}\n`);
}

/** No gate if the operator accepts every agent, or if no run on this machine could have written the directory. */
export function agentGateFor(
  { options }: Pick<CommandInput, "options">,
  { places, config }: Pick<Local, "places" | "config">,
): (directory: string) => AgentGate | null {
  const acceptsAll = options["accept-agents"] === true || config.agents_auto_accept;
  return (directory) =>
    acceptsAll || isReadOnlyForUser(realPathOr(directory)) ? null : createAgentGate(directory, places.stateDirectory);
}

function realPathOr(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    errorCode(error);
    return path;
  }
}
