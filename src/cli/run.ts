import { resolve } from "node:path";
import type { Agent } from "../model/agent.ts";
import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import { isTerminal as isFinal } from "../model/states.ts";
import type { Client } from "../wire/client.ts";
import { eventLine, outputOf } from "./event-line.ts";
import { isTerminal, write } from "./io.ts";
import { type CommandInput, type CommandSpec, text, usage } from "./options.ts";
import { readParameters } from "./run-parameters.ts";
import { withCoordinator } from "./with-coordinator.ts";

export const runCommand: CommandSpec = {
  name: "run",
  summary: "run an agent and wait for its result",
  takes: "AGENT [--PARAMETER VALUE...]",
  examples: [
    ['drover run echo --message "Hello World"', "parameters are options, typed by the agent's schema"],
    ['drover run disk-usage --params \'{"path": "."}\' --json', "or JSON; the whole run as the result"],
    ["drover run nightly --detach", "only submit it"],
  ],
  options: {
    params: { value: "JSON", about: "parameters as an object; also for names that are options of this command" },
    prompt: { value: "T", about: "what to do, in words" },
    detach: { about: "print the run's id and do not wait" },
    "project-dir": { value: "DIR", about: "where it works" },
    priority: { value: "N", about: "higher is earlier (default 0)" },
    "idempotency-key": { value: "K", about: "the same key again is the same run" },
  },
  takesOthers: true,
  run: runAgent,
};

async function runAgent(input: CommandInput): Promise<number> {
  const [agent_name, ...more] = [...input.positionals, ...(input.rest ?? [])];
  if (!agent_name) throw usage("Name the agent to run.", "run", "AGENT");
  if (more.length > 0)
    throw usage(`${more[0]} is not an option: parameters are given as --name value.`, "run", more[0]);
  return withCoordinator(input, async (client) => {
    const run = await submit(client, agent_name, input);
    if (input.options["detach"]) {
      write(1, input.options["json"] ? `${JSON.stringify(run)}\n` : `${run.run_id}\n`);
      if (!input.options["quiet"]) write(2, `Watch it: drover runs events ${run.run_id}\n`);
      return 0;
    }
    stopOnSignal(client, run.run_id);
    const finished = isFinal(run.status) ? run : await follow(client, run.run_id, input);
    if (input.options["json"]) write(1, `${JSON.stringify(finished)}\n`);
    else if (!input.options["quiet"] && finished.status !== "completed") {
      write(
        2,
        `drover: ${finished.status}${finished.reason ? ` (${finished.reason})` : ""}: ${finished.error ?? ""}\n  drover runs show ${finished.run_id}\n`,
      );
    }
    return exitCodeOf(finished);
  });
}

async function submit(client: Client, agent_name: string, { options, others, env, cwd }: CommandInput): Promise<Run> {
  const schema = await schemaOf(client, agent_name);
  const prompt = text(options, "prompt");
  const project = text(options, "project-dir");
  const priority = text(options, "priority");
  const key = text(options, "idempotency-key");
  const parent = env["DROVER_RUN_ID"];
  return client.submit({
    agent_name,
    parameters: readParameters(others, text(options, "params"), schema),
    attended: isTerminal(0) && !options["detach"],
    ...(prompt === undefined ? {} : { prompt }),
    ...(project === undefined ? {} : { project_dir: resolve(cwd, project) }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    ...(key === undefined ? {} : { idempotency_key: key }),
    ...(parent ? { parent_run_id: parent } : {}),
  });
}

/** An unknown agent is refused when it is submitted, with a suggestion. */
async function schemaOf(client: Client, agent_name: string): Promise<Agent["parameters_schema"]> {
  try {
    return (await client.agents.get(agent_name)).parameters_schema;
  } catch (error) {
    if (error instanceof RequestError && error.code === "DROVER-API-014") return undefined;
    throw error;
  }
}

/** Its output as it comes; everything else only for a person who watches. */
async function follow(client: Client, run_id: string, { options }: CommandInput): Promise<Run> {
  const talk = isTerminal(2) && !options["quiet"] && !options["json"];
  for await (const event of client.runs.follow(run_id)) {
    const output = outputOf(event);
    if (output && !options["json"]) write(output.stream === "stdout" ? 1 : 2, output.text);
    else if (!output && talk) write(2, `  ${eventLine(event)}\n`);
  }
  return client.runs.get(run_id);
}

/** The first Ctrl-C stops the run; a second one leaves it to itself. */
function stopOnSignal(client: Client, run_id: string): void {
  let asked = false;
  process.on("SIGINT", () => {
    if (asked) process.exit(130);
    asked = true;
    client.runs
      .stop(run_id)
      .catch((error: unknown) => write(2, `drover: ${error instanceof Error ? error.message : String(error)}\n`));
  });
}

function exitCodeOf({ status, reason, exit_code }: Run): number {
  if (status === "completed") return exit_code ?? 0;
  if (status === "cancelled") return 130;
  if (reason === "timeout" || reason === "idle" || reason === "limit_exceeded") return 124;
  if (reason === "command_not_found") return 127;
  return exit_code || 1;
}
