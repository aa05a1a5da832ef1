import type { Question } from "../model/question.ts";
import type { Run } from "../model/run.ts";
import { hasEnded } from "../model/states.ts";
import type { ApiClient } from "../wire/client.ts";
import { findDroverCommand } from "./drover-command.ts";
import { findRun } from "./find-id.ts";
import { withRecord } from "./with-record.ts";
import { formatColumns } from "./help.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { escapeInvisible } from "./question-view.ts";
import { quoteForShell } from "./shell-quote.ts";
import { toHintId } from "./short-ids.ts";
import { replaceControlCharacters } from "./table.ts";

export const runsWhy: CommandSpec = {
  name: "runs why",
  summary: "show what a run waits for",
  placeholders: "RUN",
  arity: [1, 1],
  examples: [
    ["drover runs why last", "your newest run"],
    ["drover runs why 5c20e9d4 --json", "as JSON"],
  ],
  options: {},
  run: explainRun,
};

type Explanation = Awaited<ReturnType<ApiClient["runs"]["why"]>>;

async function explainRun(input: CommandInput): Promise<number> {
  const explanation = await withRecord(input, async (client, hasCoordinator) => {
    const run = await findRun(client, input.positionals[0]!);
    const asksForAnswer = run.status === "waiting" || (run.status === "parked" && run.parked_why === "approval");
    const questions = asksForAnswer
      ? await client.questions.list({ run_id: run.run_id, open: true, limit: 100 })
      : null;
    const reasons = hasCoordinator ? await client.runs.why(run.run_id) : explainWithoutCoordinator(run);
    return { run, questions: questions?.items ?? [], ...reasons };
  });
  if (!explanation) return 1;
  const { run, status, why, questions } = explanation;
  if (input.options["json"]) write(1, toJsonLine({ run_id: run.run_id, status, why }));
  else if (hasEnded(status)) {
    const reason = run.reason ? ` (${run.reason})` : "";
    const verb = status === "cancelled" ? "was cancelled" : status;
    write(1, `The run ${verb}${reason}. For details: ${findDroverCommand()} runs show ${toHintId(run.run_id)}\n`);
  } else if (questions.length > 0) write(1, describeQuestions(run, questions));
  else if (why.length > 0) {
    const rows = why.map(({ demand, detail }): [string, string] => [
      replaceControlCharacters(demand),
      replaceControlCharacters(detail),
    ]);
    write(1, `The run is ${status}:\n${formatColumns(rows).join("\n")}\n`);
  } else {
    const consequence =
      status === "pending"
        ? "Nothing blocks it: it starts when the runs ahead of it in the queue have started."
        : "It is not waiting for anything.";
    write(1, `The run is ${status}. ${consequence}\n`);
  }
  return 0;
}

function describeQuestions({ run_id, status }: Run, questions: readonly Question[]): string {
  const command = `${findDroverCommand()} runs`;
  const lines = questions.map(({ tool, request_id }) => {
    const question = `${toHintId(run_id)}${questions.length === 1 ? "" : ` ${quoteForShell(request_id)}`}`;
    return `It waits for an answer about ${escapeInvisible(tool)}: ${command} approve ${question} (or ${command} deny ${question})\n`;
  });
  return `The run is ${status}. ${lines.join("")}`;
}

/** Returns the reasons that the record contains. All others depend on the coordinator and its runners. */
function explainWithoutCoordinator({ status, parked_until, waiting_for }: Run): Explanation {
  if (status === "pending")
    return { status, why: [{ demand: "coordinator", detail: "No coordinator is running. Start one: drover up" }] };
  if (status !== "parked" && status !== "waiting") return { status, why: [] };
  const until =
    parked_until === null ? "It continues when somebody answers or resumes it." : `It continues at ${parked_until}.`;
  return { status, why: [{ demand: status, detail: `${waiting_for ?? "It waits for a person."} ${until}` }] };
}
