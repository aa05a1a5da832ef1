import type { ApiClient } from "../wire/client.ts";
import { followRun } from "./follow-run.ts";
import { findSession } from "./find-id.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { submitOptions, submitRun } from "./submit-run.ts";
import { withCoordinator } from "./with-coordinator.ts";

export const sessionsResume: CommandSpec = {
  name: "sessions resume",
  summary: "continue a session and wait for the result",
  placeholders: "SESSION --prompt T [--PARAMETER VALUE...]",
  examples: [['drover sessions resume last --prompt "Now add tests"', "the agent remembers the conversation"]],
  options: submitOptions,
  takesExtraOptions: true,
  run: (input) => continueSession(input, "resume"),
};

export const sessionsFork: CommandSpec = {
  name: "sessions fork",
  summary: "continue a copy of a session and leave the original unchanged",
  placeholders: "SESSION --prompt T [--PARAMETER VALUE...]",
  examples: [
    ['drover sessions fork 5c20e9d4 --prompt "Try it the other way"', "a new session with the same history"],
    ['drover sessions fork 5c20e9d4 --at-turn 2 --prompt "Use a map instead"', "keep only the first two turns"],
  ],
  options: {
    ...submitOptions,
    "at-turn": { placeholder: "N", description: "keep the first N turns of the session (default: all)" },
  },
  takesExtraOptions: true,
  run: (input) => continueSession(input, "fork"),
};

/** Submits a run of the session's agent that continues the session or a copy of it. */
async function continueSession(input: CommandInput, mode: "resume" | "fork"): Promise<number> {
  const [id, ...extraArguments] = [...input.positionals, ...(input.rest ?? [])];
  if (!id) throw usageError(`Specify the session to ${mode}.`, `sessions ${mode}`, "SESSION");
  if (extraArguments.length > 0)
    throw usageError(
      `Unexpected argument ${extraArguments[0]}: pass the message with --prompt.`,
      `sessions ${mode}`,
      extraArguments[0],
    );
  const turn = readText(input.options, "at-turn");
  if (turn !== undefined && !/^[1-9]\d{0,5}$/.test(turn))
    throw usageError(`--at-turn ${turn} is not a positive whole number.`, "sessions fork", "--at-turn");
  const work = async (client: ApiClient): Promise<number> => {
    const { agent_name, session_id } = await findSession(client, id);
    const submitted = await submitRun(client, input, {
      agent_name,
      mode,
      session_id,
      ...(turn === undefined ? {} : { fork_at_turn: Number(turn) }),
    });
    return followRun(client, submitted, input);
  };
  return withCoordinator(input, { session: id }, work);
}
