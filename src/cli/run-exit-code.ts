import type { Run } from "../model/run.ts";
import type { FlatAgent } from "../wire/client.ts";
import { parkedExitCode } from "./describe-parked.ts";
import { signalExitCode } from "./exec-exit.ts";

/**
 * Returns the exit code of the run's command, or 128 + n for signal n. A run without a command, of an autonomous agent,
 * exits with 0 or 1. Cancelled, parked and timed-out runs have codes of their own. `type` is null if the agent is unknown.
 */
export function toExitCode(
  { status, reason, exit_code }: Run,
  type: FlatAgent["type"] | null,
  signal: string | null,
): number {
  if (status === "cancelled") return 130;
  if (status === "parked") return parkedExitCode;
  if (reason === "timeout" || reason === "idle" || reason === "limit_exceeded") return 124;
  if (type === "autonomous") return status === "completed" ? 0 : 1;
  if (status === "completed") return exit_code ?? 0;
  if (reason === "command_not_found") return 127;
  return exit_code || (reason === "signalled" && signal !== null ? signalExitCode(signal) : 1);
}
