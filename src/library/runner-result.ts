import type { Run } from "../model/run.ts";
import type { Callbacks } from "./callbacks.ts";
import { RunnerError, SDKError, SDKNotFoundError, SessionError } from "./errors.ts";
import type { RunnerResult } from "./types.ts";

/** Converts a finished or parked run to the library's result. */
export function toRunnerResult(run: Run, executor: string | null, callbacks: Callbacks): RunnerResult {
  const { started_at, created_at, finished_at } = run;
  const seconds = finished_at === null ? null : (Date.parse(finished_at) - Date.parse(started_at ?? created_at)) / 1000;
  const error = run.status === "completed" ? null : toError(run, executor, callbacks);
  return {
    success: error === null,
    jobId: run.run_id,
    ...(run.session_id === null ? {} : { sessionId: run.session_id }),
    ...(run.summary === null ? {} : { summary: run.summary }),
    ...(error === null ? {} : { error }),
    ...(seconds === null ? {} : { durationSeconds: Math.max(0, seconds) }),
    ...(callbacks.errors.length === 0 ? {} : { callbackErrors: [...callbacks.errors] }),
    run,
  };
}

function toError(run: Run, executor: string | null, { lastResultOrError }: Callbacks): Error {
  const { run_id, agent_name, reason } = run;
  const message = describe(run);
  if (reason === "session_not_found") return new SessionError(message, run_id, agent_name, run.session_id ?? undefined);
  if (executor !== "claude-sdk") return new RunnerError(message, run_id, agent_name);
  if (reason === "dependency_missing" && run.error?.includes("@anthropic-ai/claude-agent-sdk"))
    return new SDKNotFoundError(`Claude Agent SDK not found. ${run.error}`);
  const isFromSdk = reason !== null && (reason.startsWith("provider_") || sdkReasons.has(reason));
  return isFromSdk
    ? new SDKError(message, run_id, agent_name, lastResultOrError)
    : new RunnerError(message, run_id, agent_name);
}

/** Failure reasons that the SDK itself reports. */
const sdkReasons: ReadonlySet<string> = new Set([
  "max_turns",
  "permission_denied",
  "invalid_output",
  "budget_exceeded",
]);

function describe({ run_id, agent_name, status, reason, error, parked_why, parked_until }: Run): string {
  const subject = `Run ${run_id} of agent ${agent_name}`;
  if (status === "cancelled") return `${subject} was stopped.`;
  if (status === "parked")
    return `${subject} is parked (${parked_why}${parked_until === null ? "" : ` until ${parked_until}`}). Continue it: drover runs resume ${run_id}`;
  return `${subject} ${status}${reason === null ? "" : ` (${reason})`}${error === null ? "" : `: ${error}`}`;
}
