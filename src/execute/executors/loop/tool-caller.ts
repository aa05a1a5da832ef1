import { createHash } from "node:crypto";
import type { Invocation, RunContext } from "../../../model/executor.ts";
import type { ToolResult, ToolUse } from "../../../model/provider.ts";
import { suggest } from "../../../model/suggest.ts";
import type { Tool, ToolAnswer } from "../../../model/tool.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { LoopState } from "./loop-state.ts";
import type { ToolGate } from "./permissions.ts";
import { RunParked } from "./run-parked.ts";

export interface ToolCaller {
  /** Makes all calls of one answer: consecutive reads concurrently, everything else in order. */
  call(uses: readonly ToolUse[]): Promise<ToolResult[]>;
}

/** A model that gets the same answer to the same call this often, with nothing new in between, is in a loop. */
const maxRepeats = 3;

export interface ToolCallerOptions {
  gate: ToolGate;
  context: RunContext;
  state: LoopState;
  invocation: Pick<Invocation, "attended" | "granted_tools">;
  /** Answers to calls that are not made again: see ./unfinished-calls.ts. */
  left: ReadonlyMap<string, ToolAnswer>;
  checkInput: CheckInput;
}

/** Returns what is wrong with a value according to a JSON Schema. */
export type CheckInput = (schema: object, value: unknown) => Promise<{ path: string; message: string }[]>;

export function createToolCaller({
  gate,
  context,
  state,
  invocation,
  left,
  checkInput,
}: ToolCallerOptions): ToolCaller {
  const tools = new Map(gate.offered.map((tool) => [tool.name, tool]));
  const granted = new Set(invocation.granted_tools);
  const known = new Set<string>();
  /** Counts calls since the last new answer. */
  let repeated = new Map<string, number>();

  async function callOne(use: ToolUse): Promise<ToolResult> {
    const { tool_use_id } = use;
    const before = state.results.find((result) => result.tool_use_id === tool_use_id);
    if (before) return before;
    const reads = tools.get(use.name)?.effect === "read";
    const answer = left.get(tool_use_id) ?? (await answerTo(use));
    const result = { tool_use_id, output: JSON.stringify(answer), is_error: !answer.ok };
    const event = { type: "tool_result", tool_use_id, is_error: !answer.ok, output: answer } as const;
    await state.recordResult(result, event, !reads);
    return result;
  }

  async function answerTo({ name, input, fault, tool_use_id }: ToolUse): Promise<ToolAnswer> {
    const tool = tools.get(name);
    if (!tool) {
      const near = suggest(name, [...tools.keys()]);
      const meant = near ? ` Did you mean ${near}?` : "";
      return refuse("unknown_tool", `There is no tool ${name}.${meant} There are ${[...tools.keys()].join(", ")}.`);
    }
    if (fault !== undefined) return refuse("invalid_input", fault);
    const permitted = await permit(tool, input, tool_use_id);
    if ("refused" in permitted) return refuse("permission_denied", permitted.refused);
    try {
      const answer = await tool.run(permitted.input, { signal: context.signal, start: context.start });
      return permitted.edited && answer.ok ? { ...answer, input_changed_by_a_person: permitted.input } : answer;
    } catch (error) {
      if (context.signal.aborted) return refuse("cancelled", "The run was stopped.");
      return refuse("failed", `${name} failed unexpectedly: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async function permit(
    tool: Tool,
    input: unknown,
    request_id: string,
  ): Promise<{ input: unknown; edited?: true } | { refused: string }> {
    if (!gate.needsApproval(tool)) return { input };
    const { name, effect, input_schema } = tool;
    const mayWait = invocation.attended && !granted.has(name);
    if (mayWait && !state.asked.has(request_id)) await state.recordQuestion(request_id);
    const answer = await context.ask({ request_id, tool: name, input, effect, input_schema });
    switch (answer.decision) {
      case "allow": {
        if (answer.remember) granted.add(name);
        const change = answer.input === undefined ? null : { input: answer.input };
        const faults = change ? await checkInput(input_schema, change.input) : [];
        if (faults.length > 0) return { refused: doesNotFit(name, faults) };
        const data = { tool_use_id: request_id, name, ...change };
        if (change) await state.recordApproval(request_id, [{ type: "system", subtype: "input_edited", data }]);
        else if (state.asked.has(request_id)) await state.recordApproval(request_id, []);
        return change ? { ...change, edited: true } : { input };
      }
      case "deny":
        return { refused: answer.message ?? `${name} is not allowed by the agent's permission mode.` };
      case "park":
        throw new RunParked({ why: "approval", message: `The run is waiting for approval to use ${name}.` });
      case "stop":
        throw new RunFailure("permission_denied", answer.message ?? `A person denied ${name} and stopped the run.`);
    }
  }

  function countRepeat({ name, input }: ToolUse, { output }: ToolResult): void {
    const what = createHash("sha256")
      .update(JSON.stringify([name, input, output]))
      .digest("base64");
    if (!known.has(what)) repeated = new Map();
    known.add(what);
    const times = (repeated.get(what) ?? 0) + 1;
    repeated.set(what, times);
    if (times >= maxRepeats)
      throw new RunFailure(
        "loop",
        `The model called ${name} ${maxRepeats} times with the same input and the same result.`,
      );
  }

  return {
    async call(uses) {
      const results: ToolResult[] = [];
      for (let at = 0; at < uses.length;) {
        context.signal.throwIfAborted();
        const reads = uses.slice(at).findIndex((use) => tools.get(use.name)?.effect !== "read");
        const count = reads === -1 ? uses.length - at : Math.max(1, reads);
        results.push(...(await all(uses.slice(at, at + count).map(callOne))));
        at += count;
      }
      for (const [at, use] of uses.entries()) countRepeat(use, results[at]!);
      return results;
    },
  };
}

/** Like Promise.all, but waits for every promise to settle first. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

function doesNotFit(name: string, faults: readonly { path: string; message: string }[]): string {
  const what = faults.map(({ path, message }) => `${path || "input"}: ${message}`).join("; ");
  return `${name} was not called: a person changed its input, and it does not match the schema (${what.slice(0, 500)}).`;
}

function refuse(code: Extract<ToolAnswer, { ok: false }>["error"]["code"], message: string): ToolAnswer {
  return { ok: false, error: { code, message } };
}
