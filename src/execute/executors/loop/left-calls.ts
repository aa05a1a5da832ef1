import type { ToolUse } from "../../../model/provider.ts";
import type { Effect, ToolAnswer } from "../../../model/tool.ts";

export interface LeftCalls {
  pending: readonly ToolUse[];
  /** Calls that have a result. */
  known: ReadonlySet<string>;
  /** Calls that wait for approval, and so have not begun. */
  asked: ReadonlySet<string>;
  effectOf: (name: string) => Effect | undefined;
  /** The run goes on, and what it wanted to do is still wanted. */
  continues: boolean;
}

/**
 * What becomes of calls that an earlier attempt, or the run before, left without a result. Calls are made in order, so
 * that of those without a result only the first can have begun; reads are simply repeated.
 */
export function answersToLeftCalls({ pending, known, asked, effectOf, continues }: LeftCalls): Map<string, ToolAnswer> {
  const left = pending.filter(({ tool_use_id }) => !known.has(tool_use_id));
  const answers = left.map(({ tool_use_id, name }, at): [string, ToolAnswer | null] => {
    if (effectOf(name) === "read") return [tool_use_id, null];
    if (at === 0 && !asked.has(tool_use_id)) return [tool_use_id, unknownEffect(name)];
    return [tool_use_id, continues ? null : notCalled(name)];
  });
  return new Map(answers.flatMap(([id, answer]) => (answer === null ? [] : [[id, answer]])));
}

function unknownEffect(name: string): ToolAnswer {
  const message = `The run was interrupted while ${name} was called. It may or may not have had its effect: look before you call it again.`;
  return { ok: false, error: { code: "effect_unknown", message } };
}

function notCalled(name: string): ToolAnswer {
  return { ok: false, error: { code: "cancelled", message: `The run before was ended before ${name} was called.` } };
}
