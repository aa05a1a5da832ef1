import { followRun } from "./follow-run.ts";
import { type CommandInput, type CommandSpec, usageError } from "./options.ts";
import { submitOptions, submitRun } from "./submit-run.ts";
import { withCoordinator } from "./with-coordinator.ts";

export const runCommand: CommandSpec = {
  name: "run",
  summary: "run an agent and wait for its result",
  placeholders: "AGENT [--PARAMETER VALUE...]",
  examples: [
    ['drover run echo --message "Hello World"', "parameters as options, typed by the agent's schema"],
    ['drover run disk-usage --params \'{"path": "."}\' --json', "parameters as JSON; prints the whole run as JSON"],
    ['drover run claude --prompt "Explain this repository" --project-dir .', "an autonomous agent, in this directory"],
    ["drover run echo --help", "the parameters of one agent"],
    ["drover run nightly --timeout 600 --detach", "submit it with a timeout and do not wait"],
  ],
  options: { ...submitOptions, "project-dir": { placeholder: "DIR", description: "working directory of the run" } },
  takesExtraOptions: true,
  run: runAgent,
  async showHelpFor(input) {
    const { showAgentHelp } = await import("./agent-help.ts");
    return showAgentHelp(input, input.positionals[0]!);
  },
};

async function runAgent(input: CommandInput): Promise<number> {
  const [agent_name, ...extraArguments] = [...input.positionals, ...(input.rest ?? [])];
  if (!agent_name) throw usageError("Specify the agent to run.", "run", "AGENT");
  if (extraArguments.length > 0)
    throw usageError(
      `Unexpected argument ${extraArguments[0]}: pass parameters as --name value.`,
      "run",
      extraArguments[0],
    );
  return withCoordinator(input, { agent: agent_name }, async (client, ownsRuns) => {
    const submitted = await submitRun(client, input, { agent_name }).catch(async (error: unknown) => {
      const { explainUnknownAgent } = await import("./explain-unknown-agent.ts");
      throw await explainUnknownAgent(error, agent_name, input, ownsRuns ? null : client.url);
    });
    return followRun(client, submitted, input);
  });
}
