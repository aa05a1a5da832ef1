import { realpathSync } from "node:fs";
import { acceptHeld, type AgentGate, createAgentGate, isReadOnlyForUser, listHeld } from "../define/agent-gate.ts";
import { errorCode } from "../define/error-code.ts";
import { findLocal, type Local } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { tryWrite, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec, OptionSpec } from "./options.ts";

/** For the commands that serve. */
export const acceptOption: Record<string, OptionSpec> = {
  "accept-agents": { about: "use agents at once that come or change while it serves, also those of a run" },
};

export const agentsAccept: CommandSpec = {
  name: "agents accept",
  summary: "use definitions that came or changed while Drover serves",
  takes: "[NAME]",
  arity: [0, 1],
  examples: [
    ["drover agents accept", "all that are held here"],
    ["drover agents accept report", "one of them, as it was when it was held"],
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
      next: "`drover agents list` shows what is.",
    });
  for (const each of held) {
    acceptHeld(places.stateDirectory, each);
    if (input.options["json"]) write(1, jsonLine({ name: each.name, file: each.file }));
    else write(1, `accepted ${each.name} (${each.file})\n`);
  }
  if (held.length === 0 && !input.options["quiet"]) tryWrite(2, "Nothing is held.\n");
  return 0;
}

/** What is held in this place, for commands that list agents. */
export async function printHeldAgents({ env, cwd }: CommandInput): Promise<void> {
  const { places } = await findLocal(env, cwd);
  for (const { name, file } of listHeld(places.stateDirectory))
    tryWrite(2, `drover: held: ${name} (${file}). Read it, then accept it with: drover agents accept ${name}\n`);
}

/** None where the operator lets all in, or where nothing that runs here could have written it. */
export function agentGateFor(
  { options }: Pick<CommandInput, "options">,
  { places, config }: Pick<Local, "places" | "config">,
): (folder: string) => AgentGate | null {
  const acceptsAll = options["accept-agents"] === true || config.agents_auto_accept;
  return (folder) =>
    acceptsAll || isReadOnlyForUser(realOr(folder)) ? null : createAgentGate(folder, places.stateDirectory);
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    errorCode(error);
    return path;
  }
}
