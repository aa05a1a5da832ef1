import { followRun } from "./follow-run.ts";
import { type CommandInput, type CommandSpec, usage } from "./options.ts";
import { submitOptions, submitRun } from "./submit-run.ts";
import { withCoordinator } from "./with-coordinator.ts";

export const runCommand: CommandSpec = {
  name: "run",
  summary: "run an agent and wait for its result",
  takes: "AGENT [--PARAMETER VALUE...]",
  examples: [
    ['drover run echo --message "Hello World"', "parameters are options, typed by the agent's schema"],
    ['drover run disk-usage --params \'{"path": "."}\' --json', "or JSON; the whole run as the result"],
    ['drover run claude --prompt "Explain this repository" --project-dir .', "an agent that thinks, in this folder"],
    ["drover run nightly --timeout 600 --detach", "only submit it, with a time limit of its own"],
  ],
  options: { ...submitOptions, "project-dir": { value: "DIR", about: "where it works" } },
  takesExtraOptions: true,
  run: runAgent,
};

async function runAgent(input: CommandInput): Promise<number> {
  const [agent_name, ...more] = [...input.positionals, ...(input.rest ?? [])];
  if (!agent_name) throw usage("Name the agent to run.", "run", "AGENT");
  if (more.length > 0)
    throw usage(`${more[0]} is not an option: parameters are given as --name value.`, "run", more[0]);
  return withCoordinator(input, { agent: agent_name }, async (client) =>
    followRun(client, await submitRun(client, input, { agent_name }), input),
  );
}
