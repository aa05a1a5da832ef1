import { createHash } from "node:crypto";
import type { Invocation, RunContext } from "../../../model/executor.ts";
import type { ToolResult, ToolUse } from "../../../model/provider.ts";
import { suggest } from "../../../model/suggest.ts";
import type { Tool, ToolResponse } from "../../../model/tool.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { LoopState } from "./loop-state.ts";
import type { ToolGate } from "./permissions.ts";
import { RunParked } from "./run-parked.ts";

export interface ToolCaller {
  /** Makes all calls of one answer: consecutive reads run concurrently, other calls in order. */
  call(uses: readonly ToolUse[]): Promise<ToolResult[]>;
}

/**
 * The run fails if the model makes the same call this many times and gets the same answer, with nothing new in between.
 */
const maxRepeats = 3;

export interface ToolCallerOptions {
  gate: ToolGate;
  context: RunContext;
  state: LoopState;
  invocation: Pick<Invocation, "attended" | "granted_tools">;
  /** Answers to calls that are not repeated, by call id: see ./unfinished-calls.ts. */
  fixedAnswers: ReadonlyMap<string, ToolResponse>;
  checkInput: CheckInput;
}

/** Validates a value against a JSON Schema. Returns the problems, or an empty list if it is valid. */
export type CheckInput = (schema: object, value: unknown) => Promise<{ path: string; message: string }[]>;

export function createToolCaller({
  gate,
  context,
  state,
  invocation,
  fixedAnswers,
  checkInput,
}: ToolCallerOptions): ToolCaller {
  const tools = new Map(gate.offered.map((tool) => [tool.name, tool]));
  const grantedTools = new Set(invocation.granted_tools);
  const seenAnswers = new Set<string>();
  /** Counts identical calls since the last new answer. */
  let repeatCounts = new Map<string, number>();

  async function callTool(use: ToolUse): Promise<ToolResult> {
    const { tool_use_id } = use;
    const savedResult = state.results.find((result) => result.tool_use_id === tool_use_id);
    if (savedResult) return savedResult;
    const isRead = tools.get(use.name)?.effect === "read";
    const answer = fixedAnswers.get(tool_use_id) ?? (await runTool(use));
    const result = { tool_use_id, output: JSON.stringify(answer), is_error: !answer.ok };
    const event = { type: "tool_result", tool_use_id, is_error: !answer.ok, output: answer } as const;
    await state.recordResult(result, event, !isRead);
    return result;
  }

  async function runTool({ name, input, fault, tool_use_id }: ToolUse): Promise<ToolResponse> {
    const tool = tools.get(name);
    if (!tool) {
      const suggestion = suggest(name, [...tools.keys()]);
      const hint = suggestion ? ` Did you mean ${suggestion}?` : "";
      return toError("unknown_tool", `Unknown tool: ${name}.${hint} Available tools: ${[...tools.keys()].join(", ")}.`);
    }
    if (fault !== undefined) return toError("invalid_input", fault);
    const permission = await requestPermission(tool, input, tool_use_id);
    if ("denial" in permission) return toError("permission_denied", permission.denial);
    try {
      const answer = await tool.run(permission.input, { signal: context.signal, start: context.start });
      return permission.edited && answer.ok ? { ...answer, input_changed_by_a_person: permission.input } : answer;
    } catch (error) {
      if (context.signal.aborted) return toError("cancelled", "The run was stopped.");
      return toError(
        "failed",
        `${name} failed unexpectedly: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  async function requestPermission(
    tool: Tool,
    input: unknown,
    request_id: string,
  ): Promise<{ input: unknown; edited?: true } | { denial: string }> {
    if (!gate.needsApproval(tool)) return { input };
    const { name, effect, input_schema } = tool;
    const mustAsk = invocation.attended && !grantedTools.has(name);
    if (mustAsk && !state.awaitingApproval.has(request_id)) await state.recordQuestion(request_id);
    const answer = await context.ask({ request_id, tool: name, input, effect, input_schema });
    switch (answer.decision) {
      case "allow": {
        if (answer.remember) grantedTools.add(name);
        const editedInput = answer.input === undefined ? null : { input: answer.input };
        const problems = editedInput ? await checkInput(input_schema, editedInput.input) : [];
        if (problems.length > 0) return { denial: describeInvalidInput(name, problems) };
        const data = { tool_use_id: request_id, name, ...editedInput };
        if (editedInput) await state.recordApproval(request_id, [{ type: "system", subtype: "input_edited", data }]);
        else if (state.awaitingApproval.has(request_id)) await state.recordApproval(request_id, []);
        return editedInput ? { ...editedInput, edited: true } : { input };
      }
      case "deny":
        return { denial: answer.message ?? `${name} is not allowed by the agent's permission mode.` };
      case "park":
        throw new RunParked({ why: "approval", message: `The run is waiting for approval to use ${name}.` });
      case "stop":
        throw new RunFailure("permission_denied", answer.message ?? `A person denied ${name} and stopped the run.`);
    }
  }

  function countRepeat({ name, input }: ToolUse, { output }: ToolResult): void {
    const hash = createHash("sha256")
      .update(JSON.stringify([name, input, output]))
      .digest("base64");
    if (!seenAnswers.has(hash)) repeatCounts = new Map();
    seenAnswers.add(hash);
    const times = (repeatCounts.get(hash) ?? 0) + 1;
    repeatCounts.set(hash, times);
    if (times >= maxRepeats)
      throw new RunFailure(
        "loop",
        `The model called ${name} ${maxRepeats} times with the same input and the same result.`,
      );
  }

  return {
    async call(uses) {
      const results: ToolResult[] = [];
      for (let start = 0; start < uses.length;) {
        context.signal.throwIfAborted();
        const reads = uses.slice(start).findIndex((use) => tools.get(use.name)?.effect !== "read");
        const count = reads === -1 ? uses.length - start : Math.max(1, reads);
        results.push(...(await settleAll(uses.slice(start, start + count).map(callTool))));
        start += count;
      }
      for (const [index, use] of uses.entries()) countRepeat(use, results[index]!);
      return results;
    },
  };
}

/** Like Promise.all, but waits for every promise to settle first. */
async function settleAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

function describeInvalidInput(name: string, problems: readonly { path: string; message: string }[]): string {
  const details = problems.map(({ path, message }) => `${path || "input"}: ${message}`).join("; ");
  return `${name} was not called: a person changed its input, which no longer matches the schema (${details.slice(0, 500)}).`;
}

function toError(code: Extract<ToolResponse, { ok: false }>["error"]["code"], message: string): ToolResponse {
  return { ok: false, error: { code, message } };
}
