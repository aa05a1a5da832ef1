import { createHash } from "node:crypto";
import type { Answer, Invocation, RunContext } from "../../../model/executor.ts";
import { toFields } from "../clients/fields.ts";
import { matchesAny } from "../loop/permissions.ts";
import { allows, getMode } from "./options.ts";
import { getEffect, inputSchemas, namesOutsidePath, withRelativePaths } from "./tools.ts";

/** One tool call, as the SDK passes it to a hook or to its permission callback. */
interface Call {
  tool: string;
  input: unknown;
  toolUseId: string;
  /** Set if a subagent makes the call. The SDK can defer only calls of the main conversation. */
  agentId?: string | undefined;
}

type Verdict =
  | { kind: "none" }
  | { kind: "allow"; input?: Record<string, unknown> }
  | { kind: "deny"; message: string; end?: true }
  | { kind: "defer" };

/** Decides which calls need a person's answer, and asks. */
export interface Gate {
  hooks: { PreToolUse: unknown[] };
  canUseTool: unknown;
  /** The message of a person whose answer stopped the run. */
  readonly stopped: string | null;
  /** Set if a question is still open. The SDK repeats a `deferred` call when the session is resumed. */
  readonly parked: "deferred" | "denied" | null;
}

export interface GateOptions {
  invocation: Invocation;
  context: Pick<RunContext, "ask" | "dirs">;
  /** MCP tools that their servers declare as read-only. */
  readOnly: ReadonlySet<string>;
  /** How many questions were answered for each call that cannot be deferred. The count is part of the question's id. */
  askCounts: Record<string, number>;
}

/** The SDK denies a call if its hook times out, so this must exceed the time a question can stay open. */
const hookTimeoutSeconds = 2_000_000;

const callAgainLater =
  "Another call is waiting for a person's answer. Make this call again after that one is answered.";
const unanswered = "The question has not been answered yet. Call the tool again when you are asked to continue.";
const planOnly = "The agent is in plan mode: it may read and plan, but not change anything.";

export function createGate({ invocation, context, readOnly, askCounts }: GateOptions): Gate {
  const { agent } = invocation;
  const mode = getMode(agent);
  const allowed = agent.permissions?.allowed_tools ?? [];
  /** By call id, because the SDK may ask about a call twice. */
  const verdicts = new Map<string, Verdict>();
  let stopped: string | null = null;
  let parked: Gate["parked"] = null;

  async function ask({ tool, toolUseId, agentId, ...call }: Call, canDefer: boolean): Promise<Verdict> {
    if (parked !== null) return { kind: "deny", message: callAgainLater };
    const isDeferrable = canDefer && agentId === undefined;
    const input = withRelativePaths(call.input, context.dirs.work);
    const key = toKey(tool, input);
    const answer = await context.ask({
      request_id: isDeferrable ? toolUseId : `${key}-${askCounts[key] ?? 0}`,
      tool,
      input,
      effect: getEffect(tool, readOnly),
      input_schema: inputSchemas[tool],
    });
    if (answer.decision !== "park" && !isDeferrable) askCounts[key] = (askCounts[key] ?? 0) + 1;
    return toVerdict(tool, answer, isDeferrable);
  }

  function toVerdict(tool: string, answer: Answer, isDeferrable: boolean): Verdict {
    switch (answer.decision) {
      case "allow":
        if (tool === "AskUserQuestion" && toFields(answer.input)["answers"] === undefined)
          return { kind: "deny", message: "The person gave no answer. Decide for yourself." };
        return { kind: "allow", ...(answer.input === undefined ? {} : { input: { ...toFields(answer.input) } }) };
      case "deny":
        return { kind: "deny", message: answer.message ?? `A person denied this call of ${tool}.` };
      case "stop":
        stopped = answer.message ?? `A person denied ${tool} and stopped the run.`;
        return { kind: "deny", message: stopped, end: true };
      case "park":
        // The SDK keeps only one deferred call.
        if (parked !== null) return { kind: "deny", message: callAgainLater };
        parked = isDeferrable ? "deferred" : "denied";
        return isDeferrable ? { kind: "defer" } : { kind: "deny", message: unanswered, end: true };
    }
  }

  /** Runs before each call. The SDK checks a call without a verdict by its own rules, which call `canUseTool`. */
  async function beforeCall(call: Call): Promise<Verdict> {
    const { tool, input } = call;
    if (tool === "AskUserQuestion") return ask(call, true);
    const effect = getEffect(tool, readOnly);
    if (mode === "plan" && effect !== "read") return { kind: "deny", message: planOnly };
    if (mode === "bypassPermissions" || isListed(tool, allowed)) return { kind: "none" };
    if (allows(mode, effect) && !namesOutsidePath(toFields(input), context.dirs.work)) return { kind: "none" };
    return ask(call, true);
  }

  const decideAndRemember = async (call: Call, decide: () => Promise<Verdict>): Promise<Verdict> => {
    const verdict = await decide();
    if (verdict.kind !== "none") verdicts.set(call.toolUseId, verdict);
    return verdict;
  };

  return {
    hooks: {
      PreToolUse: [
        {
          timeout: hookTimeoutSeconds,
          onFailure: "block",
          hooks: [
            async (hookInput: unknown) => {
              const { tool_name, tool_input, tool_use_id, agent_id } = toFields(hookInput);
              const call = {
                tool: String(tool_name),
                input: tool_input,
                toolUseId: String(tool_use_id),
                agentId: typeof agent_id === "string" ? agent_id : undefined,
              };
              return toHookOutput(await decideAndRemember(call, () => beforeCall(call)));
            },
          ],
        },
      ],
    },
    async canUseTool(tool: string, input: unknown, { toolUseID }: { toolUseID: string }) {
      const call = { tool, input, toolUseId: toolUseID };
      return toPermission(verdicts.get(toolUseID) ?? (await decideAndRemember(call, () => ask(call, false))), input);
    },
    get stopped() {
      return stopped;
    },
    get parked() {
      return parked;
    },
  };
}

/**
 * Reports whether a pattern names the tool: exactly, by a wildcard, or with a rule such as `Bash(git *)`, which the SDK
 * checks.
 */
function isListed(tool: string, patterns: readonly string[]): boolean {
  return matchesAny(tool, patterns) || patterns.some((pattern) => pattern.startsWith(`${tool}(`));
}

function toKey(tool: string, input: unknown): string {
  return `${tool}-${createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 16)}`;
}

function toHookOutput(verdict: Verdict): unknown {
  if (verdict.kind === "none") return {};
  const hookEventName = "PreToolUse";
  switch (verdict.kind) {
    case "allow": {
      const updatedInput = verdict.input === undefined ? {} : { updatedInput: verdict.input };
      return { hookSpecificOutput: { hookEventName, permissionDecision: "allow", ...updatedInput } };
    }
    case "deny": {
      const { message } = verdict;
      return {
        ...(verdict.end ? { continue: false, stopReason: message } : {}),
        hookSpecificOutput: { hookEventName, permissionDecision: "deny", permissionDecisionReason: message },
      };
    }
    case "defer":
      return { hookSpecificOutput: { hookEventName, permissionDecision: "defer" } };
  }
}

function toPermission(verdict: Verdict, input: unknown): unknown {
  if (verdict.kind === "allow") return { behavior: "allow", updatedInput: verdict.input ?? input };
  return verdict.kind === "deny"
    ? { behavior: "deny", message: verdict.message, ...(verdict.end ? { interrupt: true } : {}) }
    : { behavior: "deny", message: callAgainLater };
}
