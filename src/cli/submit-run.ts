import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient, FlatAgent, Submission } from "../wire/client.ts";
import { attended } from "./can-ask.ts";
import { write } from "./io.ts";
import { ambiguousOptions } from "./ambiguous-options.ts";
import { type CommandInput, type OptionSpec, seconds, text, usage } from "./options.ts";
import { withRetries } from "./with-retries.ts";
import { readParameters } from "./run-parameters.ts";

/** What every command that begins a run takes. */
export const submitOptions: Record<string, OptionSpec> = {
  params: { value: "JSON", about: "parameters as an object; also for names that are options of this command" },
  prompt: { value: "T", about: "what to do, in words" },
  timeout: { value: "S", about: "end it after S seconds (default: the agent's time, else its profile's)" },
  detach: { about: "print the run's id and do not wait" },
  attended: { about: "send its questions to the inbox (default on a terminal: ask them here)" },
  "no-attended": { about: "deny what it asks" },
  priority: { value: "N", about: "higher is earlier (default 0)" },
  "idempotency-key": { value: "K", about: "the same key again is the same run" },
};

export interface Submitted {
  run: Run;
  type: FlatAgent["type"] | null;
  /** The command that resumes its session, where that is not `sessions resume`. */
  resume?: string;
}

/** Asks for a run as the options say: of an agent, or of a session that goes on. */
export async function submitRun(
  client: ApiClient,
  input: CommandInput,
  what: Pick<Submission, "agent_name" | "mode" | "session_id" | "fork_at_turn">,
): Promise<Submitted> {
  const { options, extraOptions, env, cwd } = input;
  const timeout = seconds(options, "timeout");
  const agent = await findAgent(client, what.agent_name);
  const prompt = text(options, "prompt");
  const parameters = readParameters(extraOptions, text(options, "params"), agent?.parameters_schema);
  // a procedural agent is refused whatever it is told
  if (what.mode !== undefined && agent?.type !== "procedural" && !prompt && Object.keys(parameters).length === 0)
    throw usage(`Say what to do next: --prompt "...".`, `sessions ${what.mode}`, "--prompt");
  if (agent && !options["quiet"])
    for (const warning of ambiguousOptions(
      { options, extraOptions },
      agent.parameters_schema,
      what.mode ? `sessions ${what.mode}` : "run",
    ))
      write(2, `drover: warning: ${warning}\n`);
  const project = text(options, "project-dir");
  const priority = text(options, "priority");
  // always one: a submit whose answer was lost is asked for again, and is the same run
  const key = text(options, "idempotency-key") ?? randomUUID();
  const parent = env["DROVER_RUN_ID"];
  const request: Submission = {
    ...what,
    parameters,
    ...attended(input),
    ...(prompt === undefined ? {} : { prompt }),
    ...(project === undefined ? {} : { project_dir: resolve(cwd, project) }),
    ...(timeout === undefined ? {} : { timeout_seconds: timeout }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    idempotency_key: key,
    ...(parent ? { parent_run_id: parent } : {}),
  };
  const run = await withRetries(
    () => client.submit(request),
    () => {
      if (!options["quiet"]) write(2, `drover: ${client.url} did not answer; asking again for up to 30 s\n`);
    },
  );
  return { run, type: agent?.type ?? null };
}

/** An unknown agent is refused when it is submitted, with a suggestion. */
async function findAgent(client: ApiClient, agent_name: string): Promise<FlatAgent | null> {
  try {
    return await client.agents.get(agent_name);
  } catch (error) {
    if (error instanceof RequestError && error.code === "DROVER-API-014") return null;
    throw error;
  }
}
