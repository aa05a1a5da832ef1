import type { Run } from "../model/run.ts";

/** What `drover run` has shown of a run so far. */
interface ShownOutput {
  /** The beginning of its stderr. */
  stderr: string;
  /** Why it was stopped, and by whom. */
  stopped: string | null;
  /** The signal that ended its command. */
  signal: string | null;
}

/** Says how a run ended, and why. The error of a failed command is an excerpt of its stderr, which is not printed twice. */
export function describeEnd(
  { status, reason, error, exit_code }: Run,
  { stderr, stopped, signal }: ShownOutput,
): string {
  const isFailedCommand = reason === "exit_nonzero" || reason === "signalled";
  const isShown = isFailedCommand && error !== null && error.split("\n[...]\n").every((part) => stderr.includes(part));
  const end =
    exit_code === null
      ? `The command was killed by ${signal ?? "a signal"}.`
      : `The command exited with code ${exit_code}.`;
  const cause = isShown ? end : (error ?? stopped);
  return `${status}${reason ? ` (${reason})` : ""}${cause ? `: ${cause}` : ""}`;
}
