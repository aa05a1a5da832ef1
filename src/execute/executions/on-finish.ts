import type { Readable } from "node:stream";
import type { Agent } from "../../model/agent.ts";
import type { RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import { RequestError } from "../../model/errors.ts";
import type { Variables } from "../../model/expand-agent.ts";
import { resolveCommand } from "./resolve-command.ts";
import type { Executions } from "./executions.ts";
import { createStderrExcerpt } from "./stderr-excerpt.ts";

type Ended = Exclude<Outcome, { status: "parked" }>;

export interface OnFinishOptions {
  runnerDirectory: string;
  variables: Variables;
  executions: Executions;
  emit: (event: RunEvent) => void;
  /** Of the run: it tells whether this end is a real one. */
  signal: AbortSignal;
  /** The attempt is lost or the runner goes: nothing waits for this command any more. */
  lost: AbortSignal;
  onFinishTimeoutMs: number;
}

/**
 * The agent's own command for when a run is over. It is on the record like everything else that is started,
 * hence before the result, which is last; how it ends changes nothing about the run.
 */
export async function runOnFinish(
  command: Agent["on_finish"],
  outcome: Ended,
  options: OnFinishOptions,
): Promise<void> {
  // a chain is submitted by the coordinator
  if (typeof command !== "string") return;
  // not over: somebody else has it, or will
  if (options.signal.aborted && (options.signal.reason === "lease_lost" || options.signal.reason === "shutdown"))
    return;
  const fail = (why: string): void =>
    options.emit({ type: "error", code: "on_finish", message: `The agent's on_finish command failed: ${why}` });
  const words = resolveCommand(command, options);
  if (!words.ok) return fail(words.message);
  try {
    const running = await options.executions.start(
      { ...words, timeoutMs: options.onFinishTimeoutMs, environment: variablesOf(outcome) },
      options.lost,
    );
    running.stdin?.end();
    running.stdout?.resume();
    const [ended, said] = await Promise.all([running.result, saidOn(running.stderr)]);
    if (ended.error) fail(said === "" ? ended.error.message : said);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    fail(error.message);
  }
}

function variablesOf(outcome: Ended): Record<string, string> {
  return {
    DROVER_RUN_STATUS: outcome.status,
    DROVER_RUN_REASON: outcome.status === "failed" ? outcome.reason : "",
    DROVER_EXIT_CODE: outcome.status === "cancelled" || outcome.exit_code === null ? "" : String(outcome.exit_code),
  };
}

async function saidOn(stream: Readable | null): Promise<string> {
  const said = createStderrExcerpt();
  if (stream) for await (const chunk of stream) said.push(chunk as Uint8Array); // no encoding is set
  return said.text();
}
