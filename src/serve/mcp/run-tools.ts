import type { CallToolResult } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { StoredEvent } from "../../model/event.ts";
import type { ApiClient, Submission } from "../../wire/client.ts";
import { listAddressableAgents, buildAgentTools } from "./agent-tools.ts";
import { toDataResult } from "./tool-result.ts";
import { toModelView } from "./run-view.ts";
import { fetchRun, waitForRun } from "./wait-for-run.ts";

/** The context of a tool call. The client acts on behalf of the caller. */
export interface ToolCall {
  client: ApiClient;
  signal: AbortSignal;
  /** Submits a run triggered by an agent, as a child of the run that the caller belongs to. */
  submit(request: Submission): Promise<{ run_id: string }>;
  onEvent(event: StoredEvent): void;
}

export interface RunTool {
  description: string;
  input: z.ZodObject;
  readOnly: boolean;
  run(call: ToolCall, input: unknown): Promise<CallToolResult>;
}

const run_id = z.string().min(1).max(200).describe("The id that start_run returned");
/** Below 60 s, the timeout of many clients. */
const defaultWaitSeconds = 50;
const maxDescriptionLength = 200;

/** The tools that exist regardless of the agents. */
export const runTools: Readonly<Record<string, RunTool>> = {
  list_agents: defineTool({
    description: "List the agents that can be run. With `agent`, describe one of them with its parameters.",
    input: z.strictObject({ agent: z.string().min(1).max(400).optional() }),
    readOnly: true,
    async run({ client }, { agent }) {
      if (agent !== undefined) {
        const { name, type, title, description, parameters_schema, output_schema } = await client.agents.get(agent);
        return toDataResult({ name, type, title, description, parameters_schema, output_schema });
      }
      const { items } = await client.agents.list();
      const tools = new Map(buildAgentTools(items).map(({ agent_name, name }) => [agent_name, name]));
      const agents = listAddressableAgents(items).map(
        ({ agent_name, agent: { type, title, description, parameters_schema } }) => ({
          name: agent_name,
          type,
          description: (description ?? title ?? "").slice(0, maxDescriptionLength),
          parameters: Object.keys((parameters_schema?.["properties"] as object | undefined) ?? {}),
          ...(tools.has(agent_name) ? { tool: tools.get(agent_name) } : {}),
        }),
      );
      return toDataResult({ agents });
    },
  }),
  start_run: defineTool({
    description:
      "Start a run of an agent and return its run_id at once. The run continues even if this connection is lost; wait_run returns its result.",
    input: z.strictObject({
      agent: z.string().min(1).max(400).describe("A name from list_agents"),
      prompt: z.string().max(1_000_000).optional().describe("The task, in plain language; for autonomous agents"),
      parameters: z.record(z.string(), z.unknown()).optional(),
      session_id: z.string().min(1).max(200).optional().describe("Continue this session of the same agent"),
      project_dir: z.string().min(1).max(4096).optional().describe("The directory to work in, on the runner's machine"),
      timeout_seconds: z.number().positive().max(2_592_000).optional(),
    }),
    readOnly: false,
    async run({ client, submit }, { agent, session_id, ...rest }) {
      const session = session_id === undefined ? {} : ({ mode: "resume", session_id } as const);
      const { run_id: startedId } = await submit({ agent_name: agent, ...session, ...rest });
      return toDataResult(toModelView(await fetchRun(client, startedId)));
    },
  }),
  get_run: defineTool({
    description: "Show the status and result of a run. Without run_id, list your newest runs.",
    input: z.strictObject({ run_id: run_id.optional() }),
    readOnly: true,
    async run({ client }, input) {
      if (input.run_id !== undefined) return toDataResult(toModelView(await fetchRun(client, input.run_id)));
      const { items } = await client.runs.list({ limit: 20 });
      const runs = items.map((row) => ({
        run_id: row.run_id,
        agent: row.agent_name,
        status: row.status,
        created_at: row.created_at,
      }));
      return toDataResult({ runs });
    },
  }),
  wait_run: defineTool({
    description:
      "Wait until a run ends, is parked or asks a question, and show it. Returns after timeout_seconds at the latest; the run continues.",
    input: z.strictObject({
      run_id,
      timeout_seconds: z.number().positive().max(86_400).default(defaultWaitSeconds),
    }),
    readOnly: true,
    async run({ client, signal, onEvent }, { run_id: waitedId, timeout_seconds }) {
      const wait = new AbortController();
      const end = (): void => wait.abort(signal.reason);
      const timer = setTimeout(end, timeout_seconds * 1000);
      signal.addEventListener("abort", end);
      try {
        return toDataResult(toModelView(await waitForRun(client, waitedId, { signal: wait.signal, onEvent })));
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
      }
    },
  }),
  stop_run: defineTool({
    description: "Stop a run. Has no effect on a run that has ended.",
    input: z.strictObject({ run_id }),
    readOnly: false,
    async run({ client }, { run_id: stoppedId }) {
      return toDataResult(toModelView({ run: await client.runs.stop(stoppedId), questions: [] }));
    },
  }),
  answer_question: defineTool({
    description:
      "Answer a waiting run's question about whether it may use a tool. wait_run and get_run show the open questions.",
    input: z.strictObject({
      run_id,
      request_id: z.string().min(1).max(200).describe("The question's id"),
      decision: z.enum(["allow", "deny", "stop"]).describe("stop denies and stops the run"),
      input: z.unknown().optional().describe("With allow: replaces the tool's input"),
      message: z.string().min(1).max(10_000).optional().describe("With deny or stop: the reason"),
    }),
    readOnly: false,
    async run({ client }, { run_id: askingId, request_id, ...answer }) {
      const { decision, answered_by, answered_at } = await client.questions.answer(askingId, request_id, answer);
      return toDataResult({
        run_id: askingId,
        request_id,
        decision,
        answered_by,
        answered_at,
        next: `Call wait_run with ${askingId}.`,
      });
    },
  }),
};

/** Types a tool's input by its schema. */
function defineTool<Input extends z.ZodObject>(
  definition: Omit<RunTool, "input" | "run"> & {
    input: Input;
    run(call: ToolCall, input: z.output<Input>): Promise<CallToolResult>;
  },
): RunTool {
  return { ...definition, run: (call, input) => definition.run(call, definition.input.parse(input)) };
}
