import type { AgentSdk, Query } from "../../../llm/claude-code/sdk.ts";
import type { UserInput } from "../../../model/executor.ts";
import { toStopOutcome, getStopReason } from "../../supervise/stop-outcome.ts";
import type { Done, Job } from "../../scaffold/define-executor.ts";
import { createClaudeReader } from "../clients/claude-messages.ts";
import { createUsageMeter } from "../clients/claude-usage.ts";
import { createEventWriter } from "../clients/event-writer.ts";
import { type Fields, toFields, toList, toText } from "../clients/fields.ts";
import { findUnmatchedPermissions } from "../loop/permissions.ts";
import { createGate } from "./gate.ts";
import type { ClaudeSdkHost, ClaudeEnvironment } from "./host.ts";
import { decideRunOutcome } from "./decide-run-outcome.ts";
import { findFailedServers, listServerTools } from "./mcp-status.ts";
import type { toMcpServers } from "./mcp.ts";
import { logMessage } from "./messages.ts";
import { toSdkOptions } from "./options.ts";
import { type LiveQuery, type QueryMessage, runQuery } from "./query.ts";
import { createSpending } from "./spending.ts";
import { builtInTools, getEffect } from "./tools.ts";
import { openTranscript, type Transcript } from "./transcript.ts";
import { createUsageLimit } from "./usage-limit.ts";

type Host = ClaudeSdkHost & ClaudeEnvironment & { sdk: AgentSdk };

/** Runs queries until there is no more input, and returns the result of the last one. */
export async function converse(job: Job, host: Host): Promise<Done> {
  let live: LiveQuery | null = null;
  const transcript = await openTranscript(job, { ...host, onSaveError: () => live?.kill() });
  const servers = await loadServers(job, host);
  const conversation = createConversation(job, { ...host, servers }, transcript, (started) => (live = started));
  /** Messages for the next query: those sent to earlier attempts, and those that arrive while a query ends. */
  const pending = job.invocation.inputs.flatMap(transcript.trackInput);
  const ended = new AbortController();
  void forwardInput(job, ended.signal, (input) => {
    for (const message of transcript.trackInput(input)) if (!live?.add(message)) pending.push(message);
  });
  try {
    for (let prompt: QueryMessage | null = firstPrompt(job, transcript); ;) {
      const done = await conversation.runPrompt(prompt);
      const next = pending.shift();
      if (next === undefined || done.outcome !== undefined) return done;
      prompt = next;
    }
  } finally {
    ended.abort();
  }
}

/** Sent when a run continues and its transcript does not end with a deferred call. */
const continuation =
  "The run was interrupted and continues now. A tool call without a result may or may not have taken effect: check before you repeat it. Then finish your task.";

/** Returns null if Claude Code itself repeats a deferred call and needs no message. */
function firstPrompt({ invocation, prompt }: Job, { progress }: Transcript): QueryMessage | null {
  if (!invocation.continues || !progress.prompted) return { text: prompt };
  return progress.deferred ? null : { text: continuation };
}

/** Passes on the messages that people send to the run while it works. */
async function forwardInput({ context }: Job, ended: AbortSignal, onInput: (input: UserInput) => void): Promise<void> {
  for await (const input of context.input) {
    if (ended.aborted) return;
    onInput(input);
  }
}

type Servers = ReturnType<typeof toMcpServers>;

/** Imports the server checks only for agents with servers, because the import takes a fifth of a run's startup time. */
async function loadServers({ invocation: { agent } }: Job, { mcpServers }: Host): Promise<Servers> {
  if (Object.keys({ ...agent.mcp_servers, ...mcpServers }).length === 0) return { servers: {}, failures: [] };
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
  /** Overrides the program that comes with the SDK. */
  const { bin } = invocation.executor_config;
  const { progress } = transcript;
  const readOnly = new Set<string>();
  const meter = createUsageMeter();
  const spending = createSpending(agent.budget, progress, meter, context);
  const writer = createEventWriter({ ...context, usage: spending.addUsage });
  const usageLimit = createUsageLimit();
  const { servers: mcpServers, failures } = host.servers;
  const gate = attended ? createGate({ invocation, context, readOnly, askCounts: progress.asked }) : null;
  const toolCalls = createCallTracker((tool) => getEffect(tool, readOnly) !== "read" && transcript.noteFileChanges());
  let hasCheckedTools = false;

  /**
   * Call this once the SDK has listed its tools and servers. Reports failed servers and notes which tools are
   * read-only.
   */
  async function checkTools(init: Fields, query: Query): Promise<void> {
    hasCheckedTools = true;
    const names = Object.keys(mcpServers);
    const statuses = names.length === 0 ? [] : await query.mcpServerStatus();
    for (const { server, message } of [...failures, ...findFailedServers(names, statuses)])
      await context.emit({
        type: "error",
        code: "mcp_server_failed",
        message: `The MCP server ${server} cannot be used: ${message}`,
      });
    const tools = listServerTools(statuses);
    for (const { name, isReadOnly } of tools) if (isReadOnly) readOnly.add(name);
    const toolNames = [...builtInTools, ...toList(init["tools"]).map(toText), ...tools.map(({ name }) => name)];
    for (const warning of findUnmatchedPermissions(agent.permissions, toolNames)) await context.emit(warning);
  }

  const buildOptions = (query: () => Query): Record<string, unknown> => ({
    ...toSdkOptions(agent, { attended, mcpServers, spent: progress }),
    ...transcript.getSessionOptions(),
    cwd: job.workDir,
    env: host.env,
    ...(typeof bin === "string" ? { pathToClaudeCodeExecutable: bin } : {}),
    sessionStore: transcript.store,
    sessionStoreFlush: "eager",
    // Without this, Claude Code may repeat a deferred call before the hooks below are registered.
    extraArgs: { "await-initialize": null },
    ...(gate === null ? {} : { canUseTool: gate.canUseTool }),
    hooks: {
      ...gate?.hooks,
      PostToolBatch: [
        {
          hooks: [
            async () =>
              (await spending.mayRequest(query())) ? {} : { continue: false, stopReason: spending.exceeded?.message },
          ],
        },
      ],
    },
  });

  async function runPrompt(prompt: QueryMessage | null): Promise<Done> {
    const reader = createClaudeReader(meter, agent.permissions?.denied_tools);
    let live: LiveQuery | null = null;
    let result: Fields = {};
    progress.deferred = false;
    const end = await runQuery({
      sdk: host.sdk,
      job,
      prompt,
      options: buildOptions(() => live!.query), // Only a started query calls hooks.
      onStart(started) {
        live = started;
        onStart(started);
      },
      async onMessage(message, { query }) {
        const fields = toFields(message);
        toolCalls.observe(fields);
        usageLimit.observe(fields);
        await logMessage(message, reader, writer);
        if (fields["type"] !== "stream_event") await host.onMessage?.(message);
        if (fields["type"] === "result") {
          result = fields;
          spending.observeResult(fields);
        }
        if (fields["subtype"] !== "init" || hasCheckedTools) return;
        await checkTools(fields, query);
        await spending.start(query);
      },
    });
    if (job.signal.aborted) {
      await transcript.flush();
      return { outcome: toStopOutcome(getStopReason(job.signal)) };
    }
    if (end.killedAfterResult)
      await context.emit({ type: "system", subtype: "ended_after_result", data: { name: "claude-sdk" } });
    progress.deferred = gate?.parked === "deferred";
    try {
      const done = decideRunOutcome({
        agent,
        end,
        result,
        gate,
        exceeded: spending.exceeded,
        limitResetsAt: usageLimit.getResetTime(result),
        reader,
        writer,
      });
      if (done.outcome?.status === "parked" && done.outcome.why === "budget") spending.renew();
      return done;
    } finally {
      await transcript.flush();
    }
  }

  return { runPrompt };
}

/** Calls `onReturn` with the name of a tool when its call returns. */
function createCallTracker(onReturn: (tool: string) => void) {
  const names = new Map<string, string>();
  return {
    observe(message: Fields): void {
      for (const block of toList(toFields(message["message"])["content"]).map(toFields)) {
        if (block["type"] === "tool_use") names.set(toText(block["id"]), toText(block["name"]));
        const name = block["type"] === "tool_result" ? names.get(toText(block["tool_use_id"])) : undefined;
        if (name !== undefined) onReturn(name);
      }
    },
  };
}
