import { constants } from "node:os";
import type { CliResult, Done } from "../../scaffold/define-executor.ts";
import type { StopReason } from "../../../model/states.ts";
import { toFailureOutcome, RunFailure } from "../../scaffold/run-failure.ts";
import { makeExcerpt } from "../../executions/stderr-excerpt.ts";
import { toStopOutcome } from "../../supervise/stop-outcome.ts";
import type { ClientDefinition, Conclusion } from "./definition.ts";
import type { Denial } from "./event-writer.ts";
import type { LineReader } from "./line-reader.ts";

/** Decides how a turn ended. Only the client itself can report success; an exit code of 0 is not enough. */
export function decideOutcome(
  { name }: Pick<ClientDefinition, "name">,
  result: Pick<CliResult, "exitCode" | "signal" | "stderr">,
  lines: Pick<LineReader, "conclude" | "getDenial">,
  stopped: StopReason | null,
): Done {
  const { exitCode, signal } = result;
  const stderr = result.stderr.trim();
  const conclusion = lines.conclude({ exitCode, stderr });
  if (stopped) return { outcome: toStopOutcome(stopped, conclusion?.text ?? undefined) };
  if (conclusion) return toOutcome(name, conclusion, exitCode, lines.getDenial());
  const fatalSignal = signal ?? toSignal(exitCode);
  if (fatalSignal !== null)
    return toDone(
      new RunFailure(
        "signalled",
        `${name} was killed by ${fatalSignal} before it reported a result.${quoteStderr(stderr)}`,
        {
          exitCode,
        },
      ),
    );
  if (exitCode === 0)
    return toDone(
      new RunFailure(
        "provider_invalid_response",
        `${name} exited with 0 but reported no result, so the run counts as failed.${quoteStderr(stderr)}`,
        { exitCode },
      ),
    );
  const message = stderr === "" ? `${name} exited with ${exitCode} and reported no result.` : makeExcerpt(stderr);
  return toDone(new RunFailure("exit_nonzero", message, { exitCode }));
}

function toOutcome(name: string, conclusion: Conclusion, exitCode: number | null, denied: Denial | null): Done {
  if (!conclusion.ok) {
    const { reason, message, text } = conclusion;
    return toDone(new RunFailure(reason, message, { exitCode, ...(text === undefined ? {} : { text }) }));
  }
  const { text, data } = conclusion;
  if (denied === null) return { text, exit_code: exitCode, ...(data === undefined ? {} : { data }) };
  const message = `${name} was not permitted to use ${denied.tool}, and nothing it tried after that succeeded. Allow the tool (permissions.allowed_tools) or choose another permissions.mode.`;
  return toDone(new RunFailure("permission_denied", message, { exitCode, ...(text === null ? {} : { text }) }));
}

/** Clients that catch a signal exit with its number plus 128. Other exit codes have a meaning of the client's own. */
function toSignal(exitCode: number | null): string | null {
  return signals.find((signal) => constants.signals[signal] + 128 === exitCode) ?? null;
}

const signals = ["SIGHUP", "SIGINT", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGTERM"] as const;

function toDone(failure: RunFailure): Done {
  return { outcome: toFailureOutcome(failure) };
}

function quoteStderr(stderr: string): string {
  return stderr === "" ? "" : ` Its stderr: ${makeExcerpt(stderr, 400)}`;
}
