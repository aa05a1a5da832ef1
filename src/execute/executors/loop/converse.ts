import type { RunContext } from "../../../model/executor.ts";
import type { ProviderSession } from "../../../model/provider.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { ModelRequests } from "./model-requests.ts";
import type { ToolCaller } from "./tool-caller.ts";
import type { LoopState, ModelAnswer } from "./loop-state.ts";

export interface ConverseOptions {
  session: ProviderSession;
  model: ModelRequests;
  tools: ToolCaller;
  state: LoopState;
  context: RunContext;
  maxTurns: number;
}

/**
 * Runs the agent loop: sends a message, then tool results, until the model calls no more tools. Returns its last text.
 * Messages that people send in the meantime go out with the next request, and the run continues until all are sent.
 * Each step is saved, so that a run whose runner was lost, or a session whose last run was stopped, can continue
 * between any two steps.
 */
export async function converse(message: string, options: ConverseOptions): Promise<string> {
  const { session, model, tools, state, context } = options;
  const { progress } = state;
  for (;;) {
    context.signal.throwIfAborted();
    const { inputs } = state;
    if (session.pending.length > 0) {
      if (progress.turns >= options.maxTurns)
        throw new RunFailure(
          "max_turns",
          `The model was still calling tools after ${progress.turns} turns, which is the limit. Raise max_turns, or ask for less in one run.`,
        );
      await model.checkBudget();
      const results = await tools.call(session.pending);
      context.signal.throwIfAborted();
      const newInputs = state.inputs;
      await state.recordTurn(await model.submit(results, newInputs), newInputs.length);
    } else if (!progress.prompted) {
      const turn = await model.send([message, ...inputs]);
      progress.prompted = true;
      await state.recordTurn(turn, inputs.length);
    } else if (inputs.length > 0) await state.recordTurn(await model.send(inputs), inputs.length);
    else if (progress.last !== null) return readLastText(progress.last);
  }
}

function readLastText({ text, stop }: Pick<ModelAnswer, "text" | "stop">): string {
  if (stop === "length")
    throw new RunFailure("provider_invalid_response", "The answer was cut off at the model's output token limit.", {
      text,
    });
  if (stop === "refused") throw new RunFailure("refused", "The model refused to answer (content filter).", { text });
  return text;
}
