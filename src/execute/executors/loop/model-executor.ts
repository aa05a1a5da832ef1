import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { findContextWindow } from "../../../llm/context-windows.ts";
import type { ProviderSettings } from "../../../llm/definition.ts";
import { chooseProvider, findProvider, type NamedProviders, openProvider } from "../../../llm/providers.ts";
import { RequestError } from "../../../model/errors.ts";
import type { Executor } from "../../../model/executor.ts";
import type { NewId } from "../../../model/ids.ts";
import type { Provider, ProviderSession } from "../../../model/provider.ts";
import type { Environment } from "../../../model/environment.ts";
import { createFileTools } from "../../../tools/file-tools.ts";
import type { McpServers } from "../../../tools/mcp-servers.ts";
import { createCommandTool } from "../../../tools/run-command.ts";
import { openWorkspace, type Workspace } from "../../../tools/workspace.ts";
import { defineExecutor, type Job, RunFailure } from "../../scaffold/define-executor.ts";
import { buildDefaultPrompt } from "../../scaffold/prompt.ts";
import { createModelRequests } from "./model-requests.ts";
import { createBudgetKeeper } from "./budget-keeper.ts";
import { type CheckInput, createToolCaller } from "./tool-caller.ts";
import { converse } from "./converse.ts";
import { answerUnfinishedCalls } from "./unfinished-calls.ts";
import { type LoopState, openLoopState } from "./loop-state.ts";
import { gateTools, findUnmatchedPermissions } from "./permissions.ts";
import { RunParked } from "./run-parked.ts";

export interface ModelHost {
  env: Environment;
  /** The providers named on the command line and in drover.yaml. */
  namedProviders?: Pick<NamedProviders, "option" | "config">;
  newId: NewId;
  version: string;
  /** Checks input that a person has edited. */
  checkInput: CheckInput;
  now?: () => Date;
  /** Waits before a retry. Tests replace it. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const defaultMaxTurns = 100;

/** Creates the executor of Drover's own agent loop, which works with any model. */
export function createModelExecutor(host: ModelHost): Executor {
  return defineExecutor({
    name: "model",
    can: { resume: true, fork: true, ask: true, input: true, state: true, fork_at_turn: true, park: true },
    async execute(job) {
      if (job.prompt.trim() === "") throw new RunFailure("refused", "The prompt is empty. Pass a prompt for the run.");
      const workspace = await openWorkspace(job.workDir);
      if (workspace.root !== job.workDir)
        throw new RunFailure("refused", `${job.workDir} was replaced by a link since the run opened it.`);
      const servers = await openServers(job, host.version);
      try {
        return await openAndRun(job, host, workspace, servers);
      } catch (error) {
        if (error instanceof RunParked) return { outcome: error.outcome };
        throw error;
      } finally {
        await servers.close();
      }
    },
  });
}

async function openAndRun(job: Job, host: ModelHost, workspace: Workspace, servers: McpServers): Promise<string> {
  const state = await openLoopState(job, host.newId);
  const opened = await openAgentProvider(job, host, state);
  try {
    return await runLoop(opened, job, { ...host, state }, workspace, servers);
  } finally {
    await opened.provider.close();
  }
}

async function runLoop(
  opened: OpenProvider,
  job: Job,
  { state, ...host }: ModelHost & { state: LoopState },
  workspace: Workspace,
  servers: McpServers,
): Promise<string> {
  const { agent, executor_config } = job.invocation;
  const limits = readLimits(executor_config);
  const tools = [...createFileTools(workspace), createCommandTool(workspace.root), ...servers.tools];
  const gate = gateTools(tools, agent.permissions);
  const names = tools.map(({ name }) => name);
  for (const warning of findUnmatchedPermissions(agent.permissions, names)) await job.context.emit(warning);
  const session = await openSession(opened, job, state, gate.offered);
  await state.save([{ type: "system", subtype: "init", executor_session_id: session.session_id }]);
  // Add them before the loop starts, which would otherwise end without them.
  await state.addInputs(job.invocation.inputs);
  saveInputs(job.context, state);
  const fixedAnswers = answerUnfinishedCalls({
    calls: session.pending,
    finished: new Set(state.results.map(({ tool_use_id }) => tool_use_id)),
    awaitingApproval: state.awaitingApproval,
    getEffect: (name) => tools.find((tool) => tool.name === name)?.effect,
    continues: job.invocation.continues,
  });
  const now = host.now ?? (() => new Date());
  const model = createModelRequests({
    session,
    context: job.context,
    contextWindow: limits.context_window ?? findContextWindow(session.model),
    price: limits.price ?? null,
    budget: createBudgetKeeper({
      budget: agent.budget,
      progress: state.progress,
      overBudget: job.context.overBudget,
      now,
      renew: state.renewBudget,
    }),
    onUsageLimit: agent.on_usage_limit ?? "park",
    now,
    pause: host.pause ?? ((ms, signal) => sleep(ms, undefined, { signal })),
  });
  // A session whose first request failed has not sent the agent's first message yet.
  const isFirstMessage = session.last_message === null && session.pending.length === 0;
  return converse(isFirstMessage ? buildDefaultPrompt({ ...job.invocation, mode: "start" }) : job.prompt, {
    session,
    model,
    tools: createToolCaller({
      gate,
      context: job.context,
      state,
      invocation: job.invocation,
      fixedAnswers,
      checkInput: host.checkInput,
    }),
    state,
    context: job.context,
    maxTurns: agent.max_turns ?? defaultMaxTurns,
  });
}

/** Saves messages to the run until the model receives them. Stops when the run ends. */
function saveInputs({ input }: Job["context"], state: LoopState): void {
  const saveAll = async (): Promise<void> => {
    for await (const message of input) await state.addInputs([message]);
  };
  // If this save fails, the run's next save fails too and ends the run.
  void saveAll().catch(() => undefined);
}

const limitsSchema = z.object({
  context_window: z.int().min(1000).optional(),
  price: z.strictObject({ input: z.number().min(0), output: z.number().min(0) }).optional(),
});

function readLimits(config: Record<string, unknown>): z.output<typeof limitsSchema> {
  const parsed = limitsSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new RunFailure("refused", `The profile's config is invalid: ${z.prettifyError(parsed.error)}`);
}

const serverStartTimeoutMs = 30_000;
const serverCallTimeoutMs = 600_000;

async function openServers({ invocation, context, workDir }: Job, version: string): Promise<McpServers> {
  const configs = invocation.agent.mcp_servers ?? {};
  // The MCP client is large, so only agents with servers load it.
  if (Object.keys(configs).length === 0) return { tools: [], failures: [], close: async () => undefined };
  const { openMcpServers } = await import("../../../tools/mcp-servers.ts");
  const servers = await openMcpServers(configs, {
    start: context.start,
    signal: context.signal,
    workingDirectory: workDir,
    version,
    startTimeoutMs: serverStartTimeoutMs,
    callTimeoutMs: serverCallTimeoutMs,
  });
  for (const { server, message } of servers.failures)
    await context.emit({
      type: "error",
      code: "mcp_server_failed",
      message: `The MCP server ${server} cannot be used: ${message}`,
    });
  return servers;
}

interface OpenProvider {
  provider: Provider;
  defaultModel: string | null;
}

async function openSession(
  { provider, defaultModel }: OpenProvider,
  { invocation, systemPrompt }: Job,
  { session_id }: LoopState,
  tools: Parameters<Provider["createSession"]>[0]["tools"],
): Promise<ProviderSession> {
  if (session_id !== null) return resumeSession(provider, session_id, invocation.agent.model);
  const model = invocation.agent.model ?? defaultModel;
  if (model === null)
    throw new RunFailure("refused", `The provider ${provider.name} has no default model. Set the agent's \`model\`.`);
  return provider.createSession({
    model,
    system_prompt: systemPrompt,
    tools: tools.map(({ name, description, input_schema }) => ({ name, description, input_schema })),
  });
}

async function openAgentProvider(
  { invocation, runnerDir, workDir, context }: Job,
  host: ModelHost,
  { store }: LoopState,
): Promise<OpenProvider> {
  const { agent, executor_config: config } = invocation;
  const readText = (name: string): string | undefined => (typeof config[name] === "string" ? config[name] : undefined);
  const providerHost = { env: host.env, directory: runnerDir, workDirectory: workDir, start: context.start };
  const base_url = readText("base_url");
  const script = agent.script ?? readText("script");
  const settings: ProviderSettings = {
    ...(base_url === undefined ? {} : { base_url }),
    ...(script === undefined ? {} : { script: resolve(runnerDir, script) }),
  };
  try {
    const name = await chooseProvider(
      { ...host.namedProviders, agent: agent.provider, profile: readText("provider") },
      providerHost,
    );
    const { defaultModel } = await findProvider(name);
    return { provider: await openProvider(name, { ...host, ...providerHost, store, settings }), defaultModel };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const reason = error.code === "DROVER-LLM-002" ? "provider_auth" : "refused";
    throw new RunFailure(reason, `${error.message} ${error.next ?? ""}`.trim());
  }
}

async function resumeSession(provider: Provider, session_id: string, model?: string): Promise<ProviderSession> {
  const session = await provider.resumeSession(session_id, model);
  if (session) return session;
  throw new RunFailure("session_not_found", "The provider cannot read this session's conversation. Start a new run.");
}
