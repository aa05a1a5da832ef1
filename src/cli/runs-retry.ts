import { RequestError } from "../model/errors.ts";
import type { ExecutionStart } from "../model/execution.ts";
import { followRun } from "./follow-run.ts";
import { connect } from "./connect.ts";
import { findRun } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { toHintId } from "./short-ids.ts";
import { withCoordinator } from "./with-coordinator.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runsRetry: CommandSpec = {
  name: "runs retry",
  summary: "start a new run with the same agent and parameters",
  placeholders: "RUN",
  arity: [1, 1],
  examples: [["drover runs retry 5c20e9d4", "prints the new run's id; without a coordinator, runs it in this process"]],
  options: {},
  run: retry,
};

async function retry(input: CommandInput): Promise<number> {
  const original = await withRecord(input, async (client) => {
    const { run_id, agent_name } = await findRun(client, input.positionals[0]!);
    if (agent_name === "exec")
      throw cannotRetryExec(run_id, (await client.executions.list({ run_id })).items[0]?.start);
    return { run_id, agent_name };
  });
  if (original === null) return 1;
  const { client } = await connect(input);
  // Without a coordinator, only this process can execute the run.
  if (!client)
    return withCoordinator(input, { agent: original.agent_name }, async (localClient) => {
      const { type } = await localClient.agents.get(original.agent_name);
      return followRun(localClient, { run: await localClient.runs.retry(original.run_id), type }, input);
    });
  const run = await client.runs.retry(original.run_id);
  write(1, input.options["json"] ? toJsonLine(run) : `${run.run_id}\n`);
  if (!input.options["quiet"]) write(2, `Watch it: ${findDroverCommand()} runs events ${toHintId(run.run_id)}\n`);
  return 0;
}

/** The record has neither the values of variables nor redacted arguments, so Drover cannot repeat the command itself. */
function cannotRetryExec(run_id: string, start: ExecutionStart | undefined): RequestError {
  const line = start && toExecCommand(start);
  return new RequestError({
    code: "DROVER-USE-001",
    field: "RUN",
    message: `Run ${run_id} was created by drover exec and has no agent to run again.`,
    next: line
      ? `Run its command again${line.includes("[redacted:") ? ", with the real values in place of [redacted:...]" : ""}: ${line}`
      : "Run its command again with drover exec.",
  });
}

function toExecCommand({ working_directory, environment, argv }: ExecutionStart): string {
  const variables = environment?.given.map((name) => `--env ${name}=... `).join("") ?? "";
  // `reportError` replaces `drover` with the command that the user can run.
  return `drover exec --cwd ${quoteForShell(working_directory)} ${variables}-- ${argv.map(quoteForShell).join(" ")}`;
}
