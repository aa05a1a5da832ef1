import { randomUUID } from "node:crypto";
import { type CallToolResult, Server, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { RequestError } from "../../model/errors.ts";
import { estimateJsonSize } from "../../model/event-size.ts";
import { suggest } from "../../model/suggest.ts";
import type { ApiClient, Submission } from "../../wire/client.ts";
import { buildAgentTools, type AgentTool, toSubmission } from "./agent-tools.ts";
import { toRunResult, toErrorResult } from "./tool-result.ts";
import { createProgress, describeEvent, type Progress, noProgress } from "./progress.ts";
import { runTools, type ToolCall } from "./run-tools.ts";
import { waitForRun } from "./wait-for-run.ts";

export interface McpServerOptions {
  /** Calls the API on behalf of the caller, with the caller's permissions. */
  client: ApiClient;
  version: string;
  /** The run that the caller belongs to, if its token does not identify it. */
  parent_run_id?: string | undefined;
  /** Called for each run that a tool call starts. */
  onStarted?: (run_id: string) => void;
  onDefect: (error: unknown, where: string) => void;
}

const instructions =
  "Drover runs agents and records what they do. Tools named run_* run one agent and return its result. For work that takes longer than you want to wait, use start_run and wait_run. A run continues when a call is cancelled or times out: find it with get_run, stop it with stop_run.";

/**
 * Serves Drover's agents as MCP tools. Uses the SDK's low-level server, which passes an agent's JSON Schema on unchanged.
 * Arguments are validated in one place, when the run is submitted.
 */
export function createDroverMcpServer(options: McpServerOptions): Server {
  const { client, version } = options;
  const server = new Server({ name: "drover", version }, { capabilities: { tools: {} }, instructions });
  server.setRequestHandler("tools/list", async () => {
    const builtInTools = Object.entries(runTools).map(([name, { description, input, readOnly }]) => ({
      name,
      description,
      inputSchema: toInputSchema(input),
      annotations: { readOnlyHint: readOnly, destructiveHint: name === "stop_run", openWorldHint: false },
    }));
    return {
      tools: [...builtInTools, ...limitSize(buildAgentTools((await client.agents.list()).items).map(describeTool))],
    };
  });
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: input = {} } }, { mcpReq }) => {
    const progress = createProgressFor(mcpReq);
    let run_id: string | undefined;
    const call: ToolCall = {
      client,
      signal: mcpReq.signal,
      async submit(request) {
        const run = await submit(options, request);
        run_id = run.run_id;
        options.onStarted?.(run_id);
        progress.report(`run ${run_id} started`);
        return run;
      },
      onEvent({ event }) {
        progress.report(describeEvent(event) ?? "");
      },
    };
    try {
      const builtIn = Object.hasOwn(runTools, name) ? runTools[name] : undefined;
      return builtIn ? await builtIn.run(call, input) : await runAgentTool(call, name, input);
    } catch (error) {
      const cause = error instanceof z.ZodError ? invalidArguments(error) : error;
      return toErrorResult(cause, run_id === undefined ? {} : { run_id }, options.onDefect);
    } finally {
      progress.stop();
    }
  });
  return server;
}

/** Total JSON size of the agent tools in a list. start_run can also run agents beyond it. */
const maxListLength = 2 * 1024 * 1024;

function limitSize<T>(tools: readonly T[]): T[] {
  let remaining = maxListLength;
  return tools.filter((tool) => (remaining -= estimateJsonSize(tool)) >= 0);
}

function toInputSchema(input: z.ZodObject): Record<string, unknown> & { type: "object" } {
  const { $schema: _dialect, ...schema }: Record<string, unknown> = z.toJSONSchema(input, { io: "input" });
  return { ...schema, type: "object" };
}

async function runAgentTool(call: ToolCall, name: string, input: Record<string, unknown>): Promise<CallToolResult> {
  const tools = buildAgentTools((await call.client.agents.list()).items);
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) throw unknownTool(name, tools);
  const { run_id } = await call.submit(toSubmission(tool, input));
  return toRunResult(await waitForRun(call.client, run_id, call));
}

function submit({ client, parent_run_id }: McpServerOptions, request: Submission) {
  return client.submit({
    ...request,
    trigger_type: "agent",
    idempotency_key: randomUUID(),
    ...(parent_run_id === undefined ? {} : { parent_run_id }),
  });
}

function describeTool({ name, agent: { title, description, type }, agent_name, inputSchema }: AgentTool) {
  return {
    name,
    ...(title === undefined ? {} : { title }),
    description: (description ?? title ?? `Run the agent ${agent_name} and return its result.`).slice(0, 1024),
    inputSchema,
    annotations: { readOnlyHint: false, openWorldHint: type === "autonomous" },
  };
}

/** Progress is sent only to clients that asked for it. */
function createProgressFor({ _meta, notify }: ServerContext["mcpReq"]): Progress {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return noProgress;
  return createProgress((progress, message) =>
    notify({ method: "notifications/progress", params: { progressToken, progress, message } }),
  );
}

function unknownTool(name: string, tools: readonly AgentTool[]): RequestError {
  const suggestion = suggest(name, new Set([...Object.keys(runTools), ...tools.map((tool) => tool.name)]));
  return new RequestError({
    code: "DROVER-MCP-002",
    message: `There is no tool ${name.slice(0, 200)}.${suggestion === undefined ? "" : ` Did you mean ${suggestion}?`}`,
    next: "List the tools again. An agent is a tool if its definition has expose: tool.",
  });
}

function invalidArguments({ issues }: z.ZodError): RequestError {
  const faults = issues.map(({ path, message }) => ({ path: ["arguments", ...path].join("."), message }));
  const [first] = faults;
  return new RequestError({
    code: "DROVER-API-006",
    message: first === undefined ? "The arguments do not match the tool's schema." : `${first.path}: ${first.message}`,
    cause: { faults },
    next: "Call the tool again with arguments that match its schema.",
  });
}
