import type { ToolUse } from "../../../model/provider.ts";
import type { Effect, ToolResponse } from "../../../model/tool.ts";

export interface UnfinishedCalls {
  /** The calls of the model's last answer. */
  calls: readonly ToolUse[];
  /** Ids of calls that have a result. */
  finished: ReadonlySet<string>;
  /** Ids of calls that are waiting for approval and so have not started. */
  awaitingApproval: ReadonlySet<string>;
  getEffect: (name: string) => Effect | undefined;
  /** Whether the same run continues, so that its calls are still needed. */
  continues: boolean;
}

/**
 * Answers calls that an earlier attempt or run left without a result. Calls other than reads run one at a time, so at
 * most the first unfinished call can have had an effect. Reads are harmless and are simply repeated, so they get no
 * answer here.
 */
export function answerUnfinishedCalls({
  calls,
  finished,
  awaitingApproval,
  getEffect,
  continues,
}: UnfinishedCalls): Map<string, ToolResponse> {
  const unfinished = calls.filter(({ tool_use_id }) => !finished.has(tool_use_id));
  const answers = unfinished.map(({ tool_use_id, name }, index): [string, ToolResponse | null] => {
    if (getEffect(name) === "read") return [tool_use_id, null];
    if (index === 0 && !awaitingApproval.has(tool_use_id)) return [tool_use_id, unknownEffect(name)];
    return [tool_use_id, continues ? null : notCalled(name)];
  });
  return new Map(answers.flatMap(([id, answer]) => (answer === null ? [] : [[id, answer]])));
}

function unknownEffect(name: string): ToolResponse {
  const message = `The run was interrupted during a call of ${name}. The call may or may not have taken effect: check before you repeat it.`;
  return { ok: false, error: { code: "effect_unknown", message } };
}

function notCalled(name: string): ToolResponse {
  return {
    ok: false,
    error: { code: "cancelled", message: `The previous run was stopped before ${name} was called.` },
  };
}
