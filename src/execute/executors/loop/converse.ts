import type { RunContext } from "../../../model/executor.ts";
import type { ProviderSession } from "../../../model/provider.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ModelAsker } from "./ask-model.ts";
import type { ToolCaller } from "./call-tools.ts";
import type { Answered, LoopState } from "./loop-state.ts";

export interface Conversing {
  session: ProviderSession;
  model: ModelAsker;
  tools: ToolCaller;
  state: LoopState;
  context: RunContext;
  maxTurns: number;
}

/**
 * The loop: a message, then answers and tool results until the model has nothing left to call. Returns its last text.
 * What people say to the run meanwhile is part of the next request; a run that has such a message does not end.
 * Each step is saved; a run that lost its runner begins between two of them, and so does one that continues a session
 * whose last run was ended in the middle.
 */
export async function converse(message: string, on: Conversing): Promise<string> {
  const { session, model, tools, state, context } = on;
  const { progress } = state;
  for (;;) {
    context.signal.throwIfAborted();
    const { inputs } = state;
    if (session.pending.length > 0) {
      if (progress.turns >= on.maxTurns)
        throw new RunFailure(
          "max_turns",
          `The model still wanted to use tools after ${progress.turns} turns, the most it may take.`,
        );
      await model.checkBudget();
      const results = await tools.call(session.pending);
      context.signal.throwIfAborted();
      const heard = state.inputs;
      await state.answered(await model.submit(results, heard), heard.length);
    } else if (!progress.prompted) {
      const turn = await model.send([message, ...inputs]);
      progress.prompted = true;
      await state.answered(turn, inputs.length);
    } else if (inputs.length > 0) await state.answered(await model.send(inputs), inputs.length);
    else if (progress.last !== null) return lastText(progress.last);
  }
}

function lastText({ text, stop }: Pick<Answered, "text" | "stop">): string {
  if (stop === "length")
    throw new RunFailure("provider_invalid_response", "The answer was cut off at the model's limit of output tokens.", {
      text,
    });
  if (stop === "refused")
    throw new RunFailure("refused", "The model's service refused to answer (content filter).", { text });
  return text;
}
