import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { shortInput, visible } from "./question-view.ts";
import { hintId } from "./short-ids.ts";
import { droverCommand } from "./drover-command.ts";

/** EX_TEMPFAIL: the run has neither failed nor finished. */
export const parkedExitCode = 75;

/** Describes what a parked run waits for, with the command that continues it. */
export async function describeParked({ questions }: Pick<ApiClient, "questions">, run: Run): Promise<string> {
  const { run_id, parked_why, parked_until, waiting_for } = run;
  const id = hintId(run_id);
  if (parked_why === "approval") {
    const openQuestions = (await questions.list({ run_id, open: true, limit: 100 })).items;
    const questionLines = openQuestions.map(({ tool, input }) => `  ${visible(tool)} ${shortInput(input)}\n`).join("");
    return `drover: parked: the run waits for an answer, and none of its processes run until then\n${questionLines}  ${droverCommand()} runs approve ${id}\n  ${droverCommand()} runs deny ${id}\n`;
  }
  const reason = { budget: "its budget is spent", usage_limit: "its account has reached its usage limit" }[
    parked_why ?? "budget"
  ];
  const until = parked_until === null ? "" : ` It continues automatically at ${parked_until}.`;
  const details = waiting_for ? ` ${visible(waiting_for)}` : "";
  return `drover: parked: ${reason}.${details}${until}\n  ${droverCommand()} runs resume ${id}\n`;
}
