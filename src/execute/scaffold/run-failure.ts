import type { Outcome } from "../../model/executor.ts";
import type { FailureReason } from "../../model/states.ts";

/** An executor throws this to fail its run with one of the defined failure reasons. */
export class RunFailure extends Error {
  override readonly name = "RunFailure";
  readonly reason: FailureReason;
  readonly exitCode: number | null;
  readonly text: string | undefined;
  readonly data: unknown;
  constructor(
    reason: FailureReason,
    message: string,
    details: { exitCode?: number | null; text?: string; data?: unknown; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.reason = reason;
    this.exitCode = details.exitCode ?? null;
    this.text = details.text;
    this.data = details.data;
  }
}

export function toFailureOutcome({ reason, message, exitCode, text, data }: RunFailure): Outcome {
  return {
    status: "failed",
    reason,
    message,
    exit_code: exitCode,
    ...(text === undefined ? {} : { text }),
    ...(data === undefined ? {} : { data }),
  };
}

/** The error for a fork at a turn that the session does not have. */
export function unknownTurnFailure(turn: number, turns: number | null): RunFailure {
  if (turns === null)
    return new RunFailure(
      "refused",
      "The beginning of the session was summarized to save space, so it cannot be forked at an earlier turn. Omit fork_at_turn.",
    );
  const count = turns === 1 ? "1 turn" : `${turns} turns`;
  return new RunFailure(
    "refused",
    `The session cannot be forked at turn ${turn}: it has ${count}. Choose fork_at_turn from 1 to ${turns}, or omit it.`,
  );
}
