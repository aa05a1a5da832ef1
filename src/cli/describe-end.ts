import type { Run } from "../model/run.ts";

/** What `drover run` has seen of a run so far. */
interface ObservedRun {
  /** The beginning of the run's stderr. */
  stderr: string;
  /** Why the run was stopped, and by whom. */
  stopReason: string | null;
  /** The signal that ended the run's command. */
  signal: string | null;
}

/** Says how a run ended, and why. The error of a failed command is an excerpt of its stderr, which is not printed twice. */
export function describeEnd(
  { status, reason, error, exit_code }: Run,
  { stderr, stopReason, signal }: ObservedRun,
): string {
  const isFailedCommand = reason === "exit_nonzero" || reason === "signalled";
  const isShown = isFailedCommand && error !== null && error.split("\n[...]\n").every((part) => stderr.includes(part));
  const commandEnd =
    exit_code === null
      ? `The command was killed by ${signal ?? "a signal"}.`
      : `The command exited with code ${exit_code}.`;
  const cause = isShown ? commandEnd : (error ?? stopReason);
  return `${status}${reason ? ` (${reason})` : ""}${cause ? `: ${cause}` : ""}`;
}
