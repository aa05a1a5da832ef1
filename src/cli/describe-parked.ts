import type { Run } from "../model/run.ts";
import type { ApiClient } from "../wire/client.ts";
import { summarizeInput, escapeInvisible } from "./question-view.ts";
import { toHintId } from "./short-ids.ts";
import { findDroverCommand } from "./drover-command.ts";

/** EX_TEMPFAIL of sysexits.h, because the run has neither failed nor finished. */
export const parkedExitCode = 75;

/** Describes what a parked run waits for, with the command that continues it. */
export async function describeParked({ questions }: Pick<ApiClient, "questions">, run: Run): Promise<string> {
  const { run_id, parked_why, parked_until, waiting_for } = run;
  const id = toHintId(run_id);
  if (parked_why === "approval") {
    const openQuestions = (await questions.list({ run_id, open: true, limit: 100 })).items;
    const questionLines = openQuestions
      .map(({ tool, input }) => `  ${escapeInvisible(tool)} ${summarizeInput(input)}\n`)
      .join("");
    return `drover: parked: the run waits for an answer, and none of its processes run until then\n${questionLines}  ${findDroverCommand()} runs approve ${id}\n  ${findDroverCommand()} runs deny ${id}\n`;
  }
  const reason = { budget: "its budget is spent", usage_limit: "its account has reached its usage limit" }[
    parked_why ?? "budget"
  ];
  const until = parked_until === null ? "" : ` It continues automatically at ${parked_until}.`;
  const details = waiting_for ? ` ${escapeInvisible(waiting_for)}` : "";
  return `drover: parked: ${reason}.${details}${until}\n  ${findDroverCommand()} runs resume ${id}\n`;
}
