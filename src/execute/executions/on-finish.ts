import type { Readable } from "node:stream";
import type { Agent } from "../../model/agent.ts";
import type { RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import { RequestError } from "../../model/errors.ts";
import type { Variables } from "../../model/expand-agent.ts";
import { resolveCommand } from "./resolve-command.ts";
import type { Executions } from "./executions.ts";
import { createStderrExcerpt } from "./stderr-excerpt.ts";

type FinalOutcome = Exclude<Outcome, { status: "parked" }>;

export interface OnFinishOptions {
  runnerDirectory: string;
  variables: Variables;
  executions: Executions;
  emit: (event: RunEvent) => void;
  /** The run's signal. Its reason shows whether another runner will continue the run. */
  signal: AbortSignal;
  /** Aborted when the attempt is lost or the runner shuts down, which stops this command. */
  lostSignal: AbortSignal;
  onFinishTimeoutMs: number;
}

/**
 * Runs the agent's on_finish command after a run. It is recorded as an execution, so it runs before the result, which is
 * the last event. Its exit code does not change the run's outcome.
 */
export async function runOnFinish(
  command: Agent["on_finish"],
  outcome: FinalOutcome,
  options: OnFinishOptions,
): Promise<void> {
  // Anything but a string is a chain, which the coordinator submits.
  if (typeof command !== "string") return;
  // The run is not over: another runner continues it.
  if (options.signal.aborted && (options.signal.reason === "lease_lost" || options.signal.reason === "shutdown"))
    return;
  const fail = (reason: string): void =>
    options.emit({ type: "error", code: "on_finish", message: `The agent's on_finish command failed: ${reason}` });
  const resolved = resolveCommand(command, options);
  if (!resolved.ok) return fail(resolved.message);
  try {
    const running = await options.executions.start(
      { ...resolved, timeoutMs: options.onFinishTimeoutMs, environment: toVariables(outcome) },
      options.lostSignal,
    );
    running.stdin?.end();
    running.stdout?.resume();
    const [ended, stderr] = await Promise.all([running.result, readExcerpt(running.stderr)]);
    if (ended.error) fail(stderr === "" ? ended.error.message : stderr);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    fail(error.message);
  }
}

function toVariables(outcome: FinalOutcome): Record<string, string> {
  return {
    DROVER_RUN_STATUS: outcome.status,
    DROVER_RUN_REASON: outcome.status === "failed" ? outcome.reason : "",
    DROVER_EXIT_CODE: outcome.status === "cancelled" || outcome.exit_code === null ? "" : String(outcome.exit_code),
  };
}

async function readExcerpt(stream: Readable | null): Promise<string> {
  const excerpt = createStderrExcerpt();
  if (stream) for await (const chunk of stream) excerpt.push(chunk as Uint8Array); // No encoding is set, so chunks are bytes.
  return excerpt.text();
}
