import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { RequestError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import type { ApiClient, FlatAgent, Submission } from "../wire/client.ts";
import { readAttended } from "./can-ask.ts";
import { write } from "./io.ts";
import { findAmbiguousOptions } from "./ambiguous-options.ts";
import { type CommandInput, type OptionSpec, readSeconds, readText, usageError } from "./options.ts";
import { withRetries } from "./with-retries.ts";
import { readParameters, parametersHelp } from "./run-parameters.ts";
import { quoteForShell } from "./shell-quote.ts";

/** Options of every command that starts a run. */
export const submitOptions: Record<string, OptionSpec> = {
  params: { placeholder: "JSON", description: "parameters as a JSON object, including names that clash with options" },
  prompt: { placeholder: "T", description: "the prompt" },
  timeout: { placeholder: "S", description: "stop the run after S seconds (default: from the agent or its profile)" },
  detach: { description: "print the run's id and do not wait for the result" },
  attended: { description: "send its questions to the inbox (default on a terminal: ask them here)" },
  "no-attended": { description: "deny tool calls instead of asking about them" },
  priority: { placeholder: "N", description: "runs with a higher priority start earlier (default: 0)" },
  "idempotency-key": { placeholder: "K", description: "submitting again with the same key returns the same run" },
};

export interface SubmittedRun {
  run: Run;
  type: FlatAgent["type"] | null;
  /** The command that resumes the run's session, if it is not `drover sessions resume`. */
  resume?: string;
}

/** Submits a run of an agent, or one that continues a session, with the options of the command. */
export async function submitRun(client: ApiClient, input: CommandInput, target: RunTarget): Promise<SubmittedRun> {
  try {
    return await submit(client, input, target);
  } catch (error) {
    throw isParameterError(error) ? withAgentCommand(error, target.agent_name) : error;
  }
}

type RunTarget = Pick<Submission, "agent_name" | "mode" | "session_id" | "fork_at_turn">;

/** Whether the agent's schema refuses the parameters, here or at the coordinator. */
export function isParameterError(error: unknown): error is RequestError {
  return error instanceof RequestError && (error.code.startsWith("DROVER-PAR-") || error.next === parametersHelp);
}

/** Adds the command that shows the agent's parameters. It replaces a next step that is meant for callers of the API. */
export function withAgentCommand(error: RequestError, agent_name: string, example = ""): RequestError {
  const { code, message, field, cause, next } = error;
  const command = `See \`drover run ${quoteForShell(agent_name)} --help\`.${example && ` For example: ${example}`}`;
  const isSpecific =
    code !== "DROVER-PAR-001" && next !== undefined && next !== parametersHelp && !next.includes("GET /docs");
  return new RequestError({
    code,
    message,
    cause,
    next: isSpecific ? `${next} ${command}` : command,
    ...(field === undefined ? {} : { field }),
  });
}

async function submit(client: ApiClient, input: CommandInput, target: RunTarget): Promise<SubmittedRun> {
  const { options, extraOptions, env, cwd } = input;
  const timeout = readSeconds(options, "timeout");
  const agent = await findAgent(client, target.agent_name);
  const prompt = readText(options, "prompt");
  const schema = agent === null ? anyParameters : agent.parameters_schema;
  const parameters = readParameters(extraOptions, readText(options, "params"), schema);
  // The coordinator refuses to continue a procedural agent anyway, with a better message.
  if (target.mode !== undefined && agent?.type !== "procedural" && !prompt && Object.keys(parameters).length === 0)
    throw usageError(`Pass the next message with --prompt "...".`, `sessions ${target.mode}`, "--prompt");
  if (agent && !options["quiet"])
    for (const warning of findAmbiguousOptions(
      { options, extraOptions },
      agent.parameters_schema,
      target.mode ? `sessions ${target.mode}` : "run",
    ))
      write(2, `drover: warning: ${warning}\n`);
  const projectDirectory = readText(options, "project-dir");
  const priority = readText(options, "priority");
  // The key is always set, so that retrying a submission whose response was lost does not create a second run.
  const key = readText(options, "idempotency-key") ?? randomUUID();
  const parent = env["DROVER_RUN_ID"];
  const request: Submission = {
    ...target,
    parameters,
    ...readAttended(input),
    ...(prompt === undefined ? {} : { prompt }),
    ...(projectDirectory === undefined ? {} : { project_dir: resolve(cwd, projectDirectory) }),
    ...(timeout === undefined ? {} : { timeout_seconds: timeout }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
    idempotency_key: key,
    ...(parent ? { parent_run_id: parent } : {}),
  };
  const run = await withRetries(
    () => client.submit(request),
    () => {
      if (!options["quiet"]) write(2, `drover: ${client.url} does not respond; retrying for up to 30 s\n`);
    },
  );
  return { run, type: agent?.type ?? null };
}

/** Accepts every option, so that the coordinator can refuse an unknown agent before anyone looks at its parameters. */
const anyParameters = { additionalProperties: { type: ["string", "array"] } };

/** Returns null for an unknown agent, which the submission will refuse with a suggestion. */
async function findAgent(client: ApiClient, agent_name: string): Promise<FlatAgent | null> {
  try {
    return await client.agents.get(agent_name);
  } catch (error) {
    if (error instanceof RequestError && error.code === "DROVER-API-014") return null;
    throw error;
  }
}
