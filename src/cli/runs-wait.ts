import { setTimeout as pause } from "node:timers/promises";
import type { Run } from "../model/run.ts";
import { hasEnded } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import { findAgentType } from "./find-agent-type.ts";
import { findRunId } from "./find-id.ts";
import { readAllEvents, withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readSeconds } from "./options.ts";
import { toExitCode } from "./run-exit-code.ts";
import { toHintId } from "./short-ids.ts";
import { withRetries } from "./with-retries.ts";

const timeoutExitCode = 124;
const firstPauseMs = 100;
const maxPauseMs = 2000;

export const runsWait: CommandSpec = {
  name: "runs wait",
  summary: "wait until runs have ended, and exit with the code of the first that failed",
  placeholders: "RUN...",
  arity: [1, Infinity],
  examples: [
    ["drover runs wait last", "exits with the same code as `drover run`"],
    ["drover runs wait 5c20e9d4 b91f07aa --timeout 600", "both, for at most ten minutes; 124 if that is not enough"],
  ],
  options: {
    timeout: { placeholder: "S", description: "stop waiting after S seconds and exit with 124; the runs continue" },
  },
  run: waitForRuns,
};

async function waitForRuns(input: CommandInput): Promise<number> {
  const timeout = readSeconds(input.options, "timeout");
  const deadline = timeout === undefined ? Infinity : performance.now() + timeout * 1000;
  const exitCode = await withRecord(input, async (client) => {
    const ids: string[] = [];
    // Find all runs before waiting, so that a wrong id is reported at once.
    for (const query of input.positionals) ids.push(await findRunId(client, query));
    const codes = await Promise.all(ids.map((id) => waitForRun(client, id, { deadline, input })));
    return codes.find((code) => code !== 0) ?? 0;
  });
  return exitCode ?? 1;
}

/** Waits until the run has ended or is parked, prints it, and returns its exit code. */
async function waitForRun(
  client: ApiClient,
  run_id: string,
  { deadline, input }: { deadline: number; input: CommandInput },
): Promise<number> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(1.5 * pauseMs, maxPauseMs)) {
    const run = await withRetries(() => client.runs.get(run_id));
    if (hasEnded(run.status) || run.status === "parked") {
      write(1, input.options["json"] ? toJsonLine(run) : `${run_id}\t${run.status}\n`);
      return toExitCode(run, await findAgentType(client, run), await findSignal(client, run));
    }
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0) {
      if (!input.options["quiet"])
        write(
          2,
          `drover: run ${toHintId(run_id)} is still ${run.status} after ${String(input.options["timeout"])} s\n`,
        );
      return timeoutExitCode;
    }
    await pause(Math.min(pauseMs, remainingMs));
  }
}

/** Finds the signal that ended the run's command. */
async function findSignal(client: ApiClient, { run_id, reason }: Run): Promise<string | null> {
  if (reason !== "signalled") return null;
  for await (const { event } of readAllEvents(client, run_id))
    if (event.type === "execution_ended" && !event.execution.reported_by) return event.execution.signal;
  return null;
}
