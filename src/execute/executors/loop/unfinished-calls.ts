import type { ToolUse } from "../../../model/provider.ts";
import type { Effect, ToolAnswer } from "../../../model/tool.ts";

export interface UnfinishedCalls {
  pending: readonly ToolUse[];
  /** Ids of calls that have a result. */
  known: ReadonlySet<string>;
  /** Ids of calls that are waiting for approval and so have not started. */
  asked: ReadonlySet<string>;
  effectOf: (name: string) => Effect | undefined;
  /** Whether this is the same run, so that its calls are still wanted. */
  continues: boolean;
}

/**
 * Decides what happens to calls that an earlier attempt or run left without a result. Calls are made in order, so only
 * the first of them can have started. Reads are repeated.
 */
export function answerUnfinishedCalls({
  pending,
  known,
  asked,
  effectOf,
  continues,
}: UnfinishedCalls): Map<string, ToolAnswer> {
  const left = pending.filter(({ tool_use_id }) => !known.has(tool_use_id));
  const answers = left.map(({ tool_use_id, name }, at): [string, ToolAnswer | null] => {
    if (effectOf(name) === "read") return [tool_use_id, null];
    if (at === 0 && !asked.has(tool_use_id)) return [tool_use_id, unknownEffect(name)];
    return [tool_use_id, continues ? null : notCalled(name)];
  });
  return new Map(answers.flatMap(([id, answer]) => (answer === null ? [] : [[id, answer]])));
}

function unknownEffect(name: string): ToolAnswer {
  const message = `The run was interrupted while ${name} was called. It may or may not have taken effect: check before you call it again.`;
  return { ok: false, error: { code: "effect_unknown", message } };
}

function notCalled(name: string): ToolAnswer {
  return {
    ok: false,
    error: { code: "cancelled", message: `The previous run was stopped before ${name} was called.` },
  };
}
