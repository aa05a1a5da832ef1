import { RequestError } from "../model/errors.ts";
import { continueRun } from "./continue-run.ts";
import { findRun } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { toHintId } from "./short-ids.ts";
import { findDroverCommand } from "./drover-command.ts";

export const runsResume: CommandSpec = {
  name: "runs resume",
  summary: "continue a parked run now, regardless of its budget or usage limit",
  placeholders: "RUN",
  arity: [1, 1],
  examples: [["drover runs resume 5c20e9d4", "without a coordinator, runs in this process until it ends"]],
  options: {},
  run: resume,
};

async function resume(input: CommandInput): Promise<number> {
  const result = await withRecord(input, async (client, hasCoordinator) => {
    const run = await findRun(client, input.positionals[0]!);
    if (hasCoordinator) return { run: await client.runs.resume(run.run_id), hasCoordinator };
    // Without a coordinator a parked or answered run continues in this process. Any other status is refused here.
    if (run.status !== "pending" && run.status !== "parked") await client.runs.resume(run.run_id);
    if (run.parked_why === "approval") throw waitsForAnswer(run.run_id);
    return { run, hasCoordinator };
  });
  if (result === null) return 1;
  if (!result.hasCoordinator) return continueRun(input, result.run);
  write(1, input.options["json"] ? toJsonLine(result.run) : `${result.run.run_id}\t${result.run.status}\n`);
  if (!input.options["quiet"])
    write(2, `Watch it: ${findDroverCommand()} runs events ${toHintId(result.run.run_id)}\n`);
  return 0;
}

function waitsForAnswer(run_id: string): RequestError {
  return new RequestError({
    code: "DROVER-API-030",
    field: "RUN",
    message: `Run ${run_id} is waiting for an answer.`,
    next: `Answer the question: drover runs approve ${run_id} or drover runs deny ${run_id}`,
  });
}
