import type { AgentSdk, Query } from "../../../llm/claude-code/sdk.ts";
import type { UserInput } from "../../../model/executor.ts";
import { outcomeOfStop, stopReasonOf } from "../../supervise/stop-outcome.ts";
import type { Done, Job } from "../../scaffold/define-executor.ts";
import { createClaudeReader } from "../clients/claude-messages.ts";
import { createUsageMeter } from "../clients/claude-usage.ts";
import { createEventWriter } from "../clients/event-writer.ts";
import { type Fields, fieldsOf, listOf, textOf } from "../clients/fields.ts";
import { warnOfUnmatched } from "../loop/permissions.ts";
import { createGate } from "./gate.ts";
import type { ClaudeSdkHost, Place } from "./host.ts";
import { judgeRun } from "./judge-run.ts";
import { failedServers, serverTools } from "./known-tools.ts";
import type { toMcpServers } from "./mcp.ts";
import { logMessage } from "./messages.ts";
import { toSdkOptions } from "./options.ts";
import { type LiveQuery, type Prompt, runQuery } from "./query.ts";
import { createSpending } from "./spending.ts";
import { effectOf, ownTools } from "./tools.ts";
import { openTranscript, type Transcript } from "./transcript.ts";
import { createUsageLimit } from "./usage-limit.ts";

type Host = ClaudeSdkHost & Place & { sdk: AgentSdk };

/** One run: queries until nobody has anything more to say, and what the last of them came to. */
export async function converse(job: Job, host: Host): Promise<Done> {
  let live: LiveQuery | null = null;
  const transcript = await openTranscript(job, { ...host, onFault: () => live?.kill() });
  const servers = await findServers(job, host);
  const conversation = createConversation(job, { ...host, servers }, transcript, (begun) => (live = begun));
  /** What arrived while no query could take it: what earlier attempts were asked, and what came while a query ended. */
  const late = job.invocation.inputs.flatMap(transcript.expect);
  const ended = new AbortController();
  void listen(job, ended.signal, (input) => {
    for (const message of transcript.expect(input)) if (!live?.add(message)) late.push(message);
  });
  try {
    for (let prompt: Prompt | null = firstPrompt(job, transcript); ;) {
      const done = await conversation.ask(prompt);
      const next = late.shift();
      if (next === undefined || done.outcome !== undefined) return done;
      prompt = next;
    }
  } finally {
    ended.abort();
  }
}

/** Sent where a run continues, and the last thing in its transcript is not a call that waits to be made. */
const continuation =
  "The run was interrupted and continues now. A tool call without a result may or may not have had its effect: look before you repeat it. Then finish your task.";

/** null: Claude Code makes the call that it deferred, and needs no message. */
function firstPrompt({ invocation, prompt }: Job, { progress }: Transcript): Prompt | null {
  if (!invocation.continues || !progress.prompted) return { text: prompt };
  return progress.deferred ? null : { text: continuation };
}

/** What people say to the run while it works. */
async function listen({ context }: Job, ended: AbortSignal, onInput: (input: UserInput) => void): Promise<void> {
  for await (const input of context.input) {
    if (ended.aborted) return;
    onInput(input);
  }
}

type Servers = ReturnType<typeof toMcpServers>;

/** What checks them is loaded for agents that have some: it costs every other run a fifth of its own start. */
async function findServers({ invocation: { agent } }: Job, { mcpServers }: Host): Promise<Servers> {
  if (Object.keys({ ...agent.mcp_servers, ...mcpServers }).length === 0) return { servers: {}, faults: [] };
  return (await import("./mcp.ts")).toMcpServers(agent.mcp_servers, mcpServers);
}

function createConversation(
  job: Job,
  host: Host & { servers: Servers },
  transcript: Transcript,
  onStart: (live: LiveQuery) => void,
) {
  const { invocation, context } = job;
  const { agent, attended } = invocation;
  /** Another program than the one that comes with the SDK. */
  const { bin } = invocation.executor_config;
  const { progress } = transcript;
  const readOnly = new Set<string>();
  const steps = createUsageMeter();
  const spending = createSpending(agent.budget, progress, steps, context);
  const writer = createEventWriter({ ...context, usage: spending.usage });
  const limit = createUsageLimit();
  const { servers: mcpServers, faults } = host.servers;
  const gate = attended ? createGate({ invocation, context, readOnly, asked: progress.asked }) : null;
  const calls = createCalls((tool) => effectOf(tool, readOnly) !== "read" && transcript.filesChanged());
  let hasLooked = false;

  /** Once the SDK knows its tools and servers: what is missing is said, and which tools only read is learned. */
  async function lookAtTools(init: Fields, query: Query): Promise<void> {
    hasLooked = true;
    const names = Object.keys(mcpServers);
    const known = names.length === 0 ? [] : await query.mcpServerStatus();
    for (const { server, message } of [...faults, ...failedServers(names, known)])
      await context.emit({
        type: "error",
        code: "mcp_server_failed",
        message: `The MCP server ${server} cannot be used: ${message}`,
      });
    const tools = serverTools(known);
    for (const { name, reads } of tools) if (reads) readOnly.add(name);
    const all = [...ownTools, ...listOf(init["tools"]).map(textOf), ...tools.map(({ name }) => name)];
    for (const warning of warnOfUnmatched(agent.permissions, all)) await context.emit(warning);
  }

  const options = (query: () => Query): Record<string, unknown> => ({
    ...toSdkOptions(agent, { attended, mcpServers, spent: progress }),
    ...transcript.session(),
    cwd: job.workDir,
    env: host.env,
    ...(typeof bin === "string" ? { pathToClaudeCodeExecutable: bin } : {}),
    sessionStore: transcript.store,
    sessionStoreFlush: "eager",
    // A call that was deferred is made again at once: without this, sometimes before the hooks below are there.
    extraArgs: { "await-initialize": null },
    ...(gate === null ? {} : { canUseTool: gate.canUseTool }),
    hooks: {
      ...gate?.hooks,
      PostToolBatch: [
        {
          hooks: [
            async () =>
              (await spending.mayAsk(query())) ? {} : { continue: false, stopReason: spending.over?.message },
          ],
        },
      ],
    },
  });

  async function ask(prompt: Prompt | null): Promise<Done> {
    const reader = createClaudeReader(steps, agent.permissions?.denied_tools);
    let live: LiveQuery | null = null;
    let result: Fields = {};
    progress.deferred = false;
    const end = await runQuery({
      sdk: host.sdk,
      job,
      prompt,
      options: options(() => live!.query), // hooks are called by a query that has begun
      onStart(begun) {
        live = begun;
        onStart(begun);
      },
      async onMessage(message, { query }) {
        const fields = fieldsOf(message);
        calls.note(fields);
        limit.note(fields);
        await logMessage(message, reader, writer);
        if (fields["type"] !== "stream_event") await host.onMessage?.(message);
        if (fields["type"] === "result") {
          result = fields;
          spending.noteResult(fields);
        }
        if (fields["subtype"] !== "init" || hasLooked) return;
        await lookAtTools(fields, query);
        await spending.begin(query);
      },
    });
    if (job.signal.aborted) {
      await transcript.flush();
      return { outcome: outcomeOfStop(stopReasonOf(job.signal)) };
    }
    if (end.sentAway)
      await context.emit({ type: "system", subtype: "ended_after_result", data: { name: "claude-sdk" } });
    progress.deferred = gate?.parked === "deferred";
    try {
      const done = judgeRun({
        agent,
        end,
        result,
        gate,
        over: spending.over,
        limitUntil: limit.until(result),
        reader,
        writer,
      });
      if (done.outcome?.status === "parked" && done.outcome.why === "budget") spending.renew();
      return done;
    } finally {
      await transcript.flush();
    }
  }

  return { ask };
}

/** Tells which tool has returned. */
function createCalls(onReturned: (tool: string) => void) {
  const names = new Map<string, string>();
  return {
    note(message: Fields): void {
      for (const block of listOf(fieldsOf(message["message"])["content"]).map(fieldsOf)) {
        if (block["type"] === "tool_use") names.set(textOf(block["id"]), textOf(block["name"]));
        const name = block["type"] === "tool_result" ? names.get(textOf(block["tool_use_id"])) : undefined;
        if (name !== undefined) onReturned(name);
      }
    },
  };
}
