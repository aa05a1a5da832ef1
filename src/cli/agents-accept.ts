import { realpathSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import {
  acceptHeldAgent,
  type AgentGate,
  createAgentGate,
  type HeldAgent,
  isInUse,
  isReadOnlyForUser,
  listHeldAgents,
} from "../define/agent-gate.ts";
import { requireErrorCode } from "../define/error-code.ts";
import { findProject, type Project } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { connect } from "./connect.ts";
import { tryWrite, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec, OptionSpec } from "./options.ts";
import { findDroverCommand } from "./drover-command.ts";

/** An option of the commands that start a coordinator or a runner. */
export const acceptOption: Record<string, OptionSpec> = {
  "accept-agents": { description: "use new and changed agent files immediately, even if a run wrote them" },
};

/** How long to wait for the coordinator or runner, which looks for accepted definitions every second. */
const maxWaitMs = 30_000;

export const agentsAccept: CommandSpec = {
  name: "agents accept",
  summary: "accept agent definitions that were added or changed while Drover was serving",
  placeholders: "[NAME]",
  arity: [0, 1],
  examples: [
    ["drover agents accept", "accept all held definitions"],
    ["drover agents accept report", "accept one; if its file changes later, Drover holds it again"],
  ],
  options: {},
  run: accept,
};

async function accept(input: CommandInput): Promise<number> {
  const [name] = input.positionals;
  const { locations } = await findProject(input.env, input.cwd);
  const heldDefinitions = listHeldAgents(locations.stateDirectory).filter(
    (definition) => name === undefined || definition.name === name,
  );
  if (heldDefinitions.length === 0 && name !== undefined)
    throw new RequestError({
      code: "DROVER-USE-008",
      field: "NAME",
      message: `No definition of ${name} is held in ${locations.stateDirectory}.`,
      next: "Run `drover agents list` to see held definitions.",
    });
  const isServing = heldDefinitions.length > 0 && (await connect(input)).client !== null;
  for (const definition of heldDefinitions) {
    acceptHeldAgent(locations.stateDirectory, definition);
    if (isServing) await waitUntilInUse(locations.stateDirectory, definition, input);
    if (input.options["json"]) write(1, toJsonLine({ name: definition.name, file: definition.file }));
    else write(1, `accepted ${definition.name} (${definition.file})\n`);
  }
  if (heldDefinitions.length === 0 && !input.options["quiet"]) tryWrite(2, "No definitions are held.\n");
  return 0;
}

/** Waits until the agent can be run, so that a script can accept and run it. */
async function waitUntilInUse(stateDirectory: string, definition: HeldAgent, input: CommandInput): Promise<void> {
  const deadline = performance.now() + maxWaitMs;
  while (!isInUse(stateDirectory, definition)) {
    if (performance.now() > deadline) {
      if (!input.options["quiet"])
        tryWrite(
          2,
          `drover: ${definition.name} is accepted, but Drover did not start using it within ${maxWaitMs / 1000} s. Check the log of the coordinator or runner, then run ${findDroverCommand()} agents list\n`,
        );
      return;
    }
    await setTimeout(50);
  }
}

/** Returns each file's definition once. A coordinator and a runner that read the same directory each hold its definitions. */
function removeDuplicates(definitions: readonly HeldAgent[]): HeldAgent[] {
  const byFile = new Map(
    definitions.map((definition) => [`${definition.name}\n${resolveRealPath(definition.file)}`, definition]),
  );
  return [...byFile.values()];
}

/** Prints the agent definitions held in this state directory, with the command that accepts each. */
export async function printHeldAgents({ env, cwd }: CommandInput): Promise<void> {
  const { locations } = await findProject(env, cwd);
  for (const { name, file } of removeDuplicates(listHeldAgents(locations.stateDirectory)))
    tryWrite(
      2,
      `drover: held: ${name} (${file}). Review it, then accept it with: ${findDroverCommand()} agents accept ${name}\n`,
    );
}

/**
 * Returns a function that creates the gate of a directory. A directory has no gate if the operator accepts every agent, or
 * if no run on this machine can write to the directory.
 */
export function createGateFactory(
  { options }: Pick<CommandInput, "options">,
  { locations, config }: Pick<Project, "locations" | "config">,
): (directory: string) => AgentGate | null {
  const acceptsAll = options["accept-agents"] === true || config.agents_auto_accept;
  return (directory) =>
    acceptsAll || isReadOnlyForUser(resolveRealPath(directory))
      ? null
      : createAgentGate(directory, locations.stateDirectory);
}

function resolveRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    requireErrorCode(error);
    return path;
  }
}
