import type { RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import type { StopReason } from "../../model/states.ts";
import { defaultGraceMs } from "../../process/track-process.ts";
import { createRunClocks, type RunClocks } from "./run-clocks.ts";
import { getStopReason, unresponsiveOutcome } from "./stop-outcome.ts";
import type { SuperviseOptions } from "./supervise-options.ts";

/** Stops one run within a deadline. Its signals tell each part of the run when to stop. */
export interface RunStop {
  abort(reason: StopReason): void;
  clocks: RunClocks;
  /** Aborted when the run must stop; the reason is a StopReason. */
  signal: AbortSignal;
  /** Aborted when the attempt is lost or the runner shuts down. Also cancels the cleanup of a run that was stopped before. */
  lostSignal: AbortSignal;
  /** Kills the process that the executor runs in. */
  killSignal: AbortSignal;
  /** Aborted when the executor has returned or Drover gave up on it. */
  closedSignal: AbortSignal;
  readonly isOpen: boolean;
  close(): void;
  /** Resolves with an outcome if the executor ignores the stop, so that it cannot keep the slot. */
  givenUp: Promise<Outcome>;
}

export function createRunStop(
  { executor, startOptions, settleTimeoutMs = 2000, monotonic }: SuperviseOptions,
  record: (event: RunEvent) => void,
): RunStop {
  const controller = new AbortController();
  const { signal } = controller;
  const lost = new AbortController();
  const closed = new AbortController();
  const kill = new AbortController();
  const graceMs = startOptions.graceMs ?? defaultGraceMs;
  let giveUp!: (outcome: Outcome) => void;
  const givenUp = new Promise<Outcome>((resolve) => (giveUp = resolve));
  const abort = (reason: StopReason): void => {
    controller.abort(reason);
    const isHurried = startOptions.hurry?.aborted === true;
    if (!closed.signal.aborted && (!clocks.hasDeadline || isHurried)) clocks.startDeadline(isHurried ? 1 : graceMs);
    if (reason === "lease_lost" || reason === "shutdown") lost.abort(reason);
  };
  const clocks = createRunClocks({
    abort,
    // Kill the executor's process, then give the executor one last moment to settle.
    onGraceExpired: () => kill.abort(signal.reason),
    settleTimeoutMs,
    onGivenUp() {
      if (closed.signal.aborted) return;
      const { outcome, event } = unresponsiveOutcome(executor.name, getStopReason(signal), "Drover gave up on it");
      record(event);
      giveUp(outcome);
    },
    monotonic,
  });
  return {
    abort,
    clocks,
    signal,
    lostSignal: lost.signal,
    killSignal: kill.signal,
    closedSignal: closed.signal,
    get isOpen() {
      return !closed.signal.aborted;
    },
    close() {
      closed.abort();
      clocks.end();
    },
    givenUp,
  };
}
