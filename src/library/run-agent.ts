import { resolve } from "node:path";
import { describeUntrusted, findUntrusted } from "../cli/resolve-trust.ts";
import { withEmbedded } from "../embedded.ts";
import { findProject } from "../local.ts";
import { describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { createClient, type ApiClient, type Submission } from "../wire/client.ts";
import type { Target } from "../wire/http-transport.ts";
import { prepareAgent, checkVariables, type PreparedAgent } from "./prepare-agent.ts";
import { followRun, type FollowOptions } from "./follow-run.ts";
import { createCallbacks, type Callbacks } from "./callbacks.ts";
import { RunnerError, SessionError } from "./errors.ts";
import { findExecutorProfile } from "./find-executor-profile.ts";
import type { RunnerOptionsWithCallbacks, RunnerResult } from "./types.ts";

/** Errors after the run is submitted become the result of `runAgent`. */
interface SubmittedRun {
  /** null until the run is submitted. */
  runId: string | null;
}

export async function runAgent(options: RunnerOptionsWithCallbacks): Promise<RunnerResult> {
  checkOptions(options);
  options.signal?.throwIfAborted();
  const callbacks = createCallbacks(options);
  const submitted: SubmittedRun = { runId: null };
  const name = typeof options.agent === "string" ? options.agent : (options.agent.name ?? "");
  try {
    return await (options.coordinator === undefined
      ? runInThisProcess(options, callbacks, submitted)
      : runThroughCoordinator(options, callbacks, submitted));
  } catch (error) {
    if ((options.resume ?? options.fork) !== undefined && isSessionError(error)) {
      throw new SessionError(`${error.message} ${error.next ?? ""}`.trim(), "", name, options.resume ?? options.fork);
    }
    if (submitted.runId === null || !(error instanceof Error)) throw error;
    const message = `Lost track of run ${submitted.runId} of agent ${name} before it finished: ${error.message} The run may still be active. Check it with: drover runs show ${submitted.runId}`;
    return { success: false, jobId: submitted.runId, error: new RunnerError(message, submitted.runId, name, error) };
  }
}

async function runInThisProcess(
  options: RunnerOptionsWithCallbacks,
  callbacks: Callbacks,
  submitted: SubmittedRun,
): Promise<RunnerResult> {
  const env = options.env ?? process.env;
  const cwd = resolve(options.cwd ?? ".");
  if (typeof options.agent === "string") throw needsCoordinator(options.agent);
  const prepared = await prepareAgent(options.agent, cwd);
  checkPrompt(prepared.agent, options);
  checkVariables(prepared.agent, env);
  const project = await findProject({ ...env, DROVER_STATE_DIR: options.stateDir }, cwd);
  const warn = (message: string): void => process.emitWarning(message, "DroverWarning");
  describeUntrusted(findUntrusted({ cwd, env, options: {} }, project, { profiles: true }), env).forEach(warn);
  return withEmbedded(
    {
      project,
      env,
      cwd,
      agentsDirectory: null,
      target: {
        preparedAgent: {
          profile: findExecutorProfile(prepared.agent, { cwd, config: project.config, env }),
          workspace: cwd,
        },
      },
      requester: "runAgent",
      inProcess: { mcpServers: prepared.mcpServers, onMessage: callbacks.onMessage },
      onNotice: warn,
      onDefect: (error, where) => warn(`${where}: ${error instanceof Error ? error.message : String(error)}`),
      onAgentFaults: (faults) => faults.forEach((fault) => warn(describeFault(fault))),
    },
    (client) => submitAndFollow(client, prepared, { ...options, messageSource: "executor" }, callbacks, submitted),
  );
}

async function runThroughCoordinator(
  options: RunnerOptionsWithCallbacks,
  callbacks: Callbacks,
  submitted: SubmittedRun,
): Promise<RunnerResult> {
  const client = createClient(readTarget(options));
  if (typeof options.agent === "string") {
    const agent = await client.agents.get(options.agent);
    checkPrompt(agent, options);
    return submitAndFollow(client, { agent }, { ...options, messageSource: "log" }, callbacks, submitted);
  }
  const prepared = await prepareAgent(options.agent, resolve(options.cwd ?? "."));
  checkPrompt(prepared.agent, options);
  const [inProcess] = Object.keys(prepared.mcpServers);
  if (inProcess !== undefined)
    throw invalidOption(
      `agent.mcp_servers.${inProcess}`,
      "is an in-process server, which a coordinator's runners cannot reach",
      "Run the agent without a coordinator, or use a server that the runners can start.",
    );
  await client.agents.put(prepared.agent.name, prepared.agent);
  return submitAndFollow(client, prepared, { ...options, messageSource: "log" }, callbacks, submitted);
}

async function submitAndFollow(
  client: ApiClient,
  { agent }: Pick<PreparedAgent, "agent">,
  options: RunnerOptionsWithCallbacks & FollowOptions,
  callbacks: Callbacks,
  submitted: SubmittedRun,
): Promise<RunnerResult> {
  const run = await client.submit(toSubmission(agent, options));
  submitted.runId = run.run_id;
  return followRun(client, run, agent.executor ?? null, callbacks, options);
}

function toSubmission(
  { name, working_directory }: PreparedAgent["agent"],
  options: RunnerOptionsWithCallbacks,
): Submission {
  const { resume, fork, forkAtTurn, prompt, schedule, parameters } = options;
  const session_id = resume ?? fork;
  // Without either option, the agent's own setting applies.
  const attended = options.attended ?? (options.onQuestion === undefined ? undefined : true);
  return {
    agent_name: name,
    ...(prompt === undefined ? {} : { prompt }),
    ...(attended === undefined ? {} : { attended }),
    trigger_type: options.triggerType ?? "manual",
    ...(parameters === undefined ? {} : { parameters }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(session_id === undefined ? {} : { mode: resume === undefined ? "fork" : "resume", session_id }),
    ...(forkAtTurn === undefined ? {} : { fork_at_turn: forkAtTurn }),
    // A session stays in the directory in which it started.
    ...(session_id !== undefined || working_directory === undefined ? {} : { project_dir: working_directory }),
  };
}

function readTarget({ coordinator, env = process.env }: RunnerOptionsWithCallbacks): Target {
  const allowHttp = env["DROVER_ALLOW_HTTP"] === "1";
  if (typeof coordinator === "object") return { allowHttp, ...coordinator, token: coordinator.token ?? null };
  const url = env["DROVER_API_URL"];
  if (!url)
    throw invalidOption(
      "coordinator",
      'is "environment", but DROVER_API_URL is not set',
      "Set DROVER_API_URL, or pass { url, token }.",
    );
  return { url, token: env["DROVER_API_KEY"] || null, allowHttp };
}

function isSessionError(error: unknown): error is RequestError {
  const codes = ["DROVER-SUB-002", "DROVER-SUB-003", "DROVER-SUB-005", "DROVER-SUB-006"];
  return error instanceof RequestError && codes.includes(error.code);
}

/** Validates at run time, for callers in plain JavaScript. */
function checkOptions(options: RunnerOptionsWithCallbacks): void {
  const { agent, prompt, stateDir, resume, fork, coordinator, signal } = options;
  if ((typeof agent !== "object" || agent === null) && (typeof agent !== "string" || agent === ""))
    throw invalidOption("agent", "must be a definition, a file or a name");
  if (prompt !== undefined && typeof prompt !== "string") throw invalidOption("prompt", "must be a string");
  if (coordinator === undefined && (typeof stateDir !== "string" || stateDir === ""))
    throw invalidOption("stateDir", "must be a path");
  if (resume !== undefined && fork !== undefined) throw invalidOption("fork", "cannot be combined with resume");
  if (options.forkAtTurn !== undefined && fork === undefined)
    throw invalidOption("forkAtTurn", "can only be used with fork");
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption("signal", "must be an AbortSignal");
  for (const name of ["onMessage", "onQuestion"] as const)
    if (options[name] !== undefined && typeof options[name] !== "function")
      throw invalidOption(name, "must be a function");
}

function checkPrompt({ name, type }: PreparedAgent["agent"], { prompt }: RunnerOptionsWithCallbacks): void {
  if (prompt === undefined && type !== "procedural")
    throw invalidOption("prompt", `is missing: the agent ${name} needs one, because it has no command`);
}

function needsCoordinator(agent: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "agent",
    message: `agent is the name ${agent}, which only a coordinator can look up.`,
    next: "Pass its definition, its file as { path, name }, or a coordinator.",
  });
}

const example = 'For example: runAgent({ agent: { name: "helper" }, prompt: "...", stateDir: "/var/lib/helper" })';

function invalidOption(field: string, problem: string, next = example): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} ${problem}.`,
    next,
  });
}
