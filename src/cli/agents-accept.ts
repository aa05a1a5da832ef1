import { realpathSync } from "node:fs";
import { acceptHeld, type AgentGate, createAgentGate, isReadOnlyForUser, listHeld } from "../define/agent-gate.ts";
import { requireErrorCode } from "../define/error-code.ts";
import { findLocal, type Local } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { tryWrite, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec, OptionSpec } from "./options.ts";
import { droverCommand } from "./drover-command.ts";

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
  const { locations } = await findLocal(input.env, input.cwd);
  const heldDefinitions = listHeld(locations.stateDirectory).filter(
    (definition) => name === undefined || definition.name === name,
  );
  if (heldDefinitions.length === 0 && name !== undefined)
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "NAME",
      message: `No definition of ${name} is held in ${locations.stateDirectory}.`,
      next: "Run `drover agents list` to see held definitions.",
    });
  for (const definition of heldDefinitions) {
    acceptHeld(locations.stateDirectory, definition);
    if (input.options["json"]) write(1, jsonLine({ name: definition.name, file: definition.file }));
    else write(1, `accepted ${definition.name} (${definition.file})\n`);
  }
  if (heldDefinitions.length === 0 && !input.options["quiet"]) tryWrite(2, "No definitions are held.\n");
  return 0;
}

/** Prints the agent definitions held in this state directory, with the command that accepts each. */
export async function printHeldAgents({ env, cwd }: CommandInput): Promise<void> {
  const { locations } = await findLocal(env, cwd);
  for (const { name, file } of listHeld(locations.stateDirectory))
    tryWrite(
      2,
      `drover: held: ${name} (${file}). Review it, then accept it with: ${droverCommand()} agents accept ${name}\n`,
    );
}

/** Returns null, and so no gate, if the operator accepts every agent or no run on this machine can write to the directory. */
export function createGateFor(
  { options }: Pick<CommandInput, "options">,
  { locations, config }: Pick<Local, "locations" | "config">,
): (directory: string) => AgentGate | null {
  const acceptsAll = options["accept-agents"] === true || config.agents_auto_accept;
  return (directory) =>
    acceptsAll || isReadOnlyForUser(realPathOrSame(directory))
      ? null
      : createAgentGate(directory, locations.stateDirectory);
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    requireErrorCode(error);
    return path;
  }
}
