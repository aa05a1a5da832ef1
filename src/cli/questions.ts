import type { Question } from "../model/question.ts";
import { toTimeCell } from "./cells.ts";
import { findQuestion } from "./find-question.ts";
import { formatColumns } from "./help.ts";
import { withRecord } from "./with-record.ts";
import { isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readLimit, readText } from "./options.ts";
import { describeEffect, toInputLines, summarizeInput, escapeInvisible } from "./question-view.ts";
import { quoteForShell } from "./shell-quote.ts";
import { toHintId } from "./short-ids.ts";
import { type Cell, formatAge, writeTable } from "./table.ts";
import { findDroverCommand } from "./drover-command.ts";

export const questionsList: CommandSpec = {
  name: "questions list",
  summary: "list questions that wait for an answer, oldest first",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover questions", "all open questions"],
    ["drover questions --closed --json", "answered, expired and superseded questions, as JSON lines"],
  ],
  options: {
    closed: { description: "list closed questions instead of open ones" },
    limit: { placeholder: "N", description: "page size (default: 50, at most 1000)" },
    cursor: { placeholder: "C", description: "start at the cursor that the previous page printed" },
  },
  run: listQuestions,
};

export const questionsShow: CommandSpec = {
  name: "questions show",
  summary: "show one question with its complete input",
  placeholders: "RUN [REQUEST]",
  arity: [1, 2],
  examples: [
    ["drover questions show 5c20e9d4", "the open question of a run"],
    ["drover questions show 5c20e9d4 toolu_01", "one of several questions"],
  ],
  options: {},
  run: showQuestion,
};

async function listQuestions(input: CommandInput): Promise<number> {
  const { options } = input;
  const limit = readLimit(options, "questions list");
  const isOpen = options["closed"] !== true;
  const page = await withRecord(input, ({ questions }) =>
    questions.list({ open: isOpen, limit, cursor: readText(options, "cursor") }),
  );
  if (!page) return 0;
  const now = new Date();
  if (options["json"]) for (const question of page.items) write(1, toJsonLine(question));
  else if (page.items.length > 0)
    writeTable(
      ["RUN", "AGE", "AGENT", "TOOL", ...(isOpen ? [] : ["ANSWER"]), "ASKS", "REQUEST", "PART OF"],
      page.items.map((question) => toCells(question, now, isOpen)),
    );
  if (options["quiet"]) return 0;
  if (page.items.length === 0 && !options["json"])
    write(2, isOpen ? "No open questions.\n" : "No question has been answered yet.\n");
  if (page.next_cursor)
    write(
      2,
      `More (${page.count} in all): ${findDroverCommand()} questions${isOpen ? "" : " --closed"} --limit ${limit} --cursor ${quoteForShell(page.next_cursor)}\n`,
    );
  if (isOpen && page.items.length > 0 && isTerminal(2))
    write(
      2,
      `Answer: ${findDroverCommand()} runs approve RUN, or ${findDroverCommand()} runs deny RUN --message "..."\n`,
    );
  return 0;
}

function toCells(question: Question, now: Date, isOpen: boolean): Cell[] {
  const { run_id, request_id, agent_name, tool, input, asked_at, parents, decision, answered_by } = question;
  return [
    { id: run_id },
    toTimeCell(asked_at, now),
    agent_name,
    tool,
    ...(isOpen ? [] : [`${decision}${answered_by ? ` by ${answered_by}` : ""}`]),
    summarizeInput(input),
    { id: request_id },
    describeParents(parents),
  ];
}

/** Describes the parent runs, with the root run last. */
function describeParents(parents: Question["parents"]): string {
  return parents.map((parent) => `${parent.agent_name} ${parent.run_id}`).join(" < ");
}

async function showQuestion(input: CommandInput): Promise<number> {
  const [run, request] = input.positionals;
  const question = await withRecord(input, (client) => findQuestion(client, run!, request));
  if (!question) return 1;
  if (input.options["json"]) {
    write(1, toJsonLine(question));
    return 0;
  }
  const { run_id, request_id, effect, parents } = question;
  const rows: [string, string | null][] = [
    ["run", run_id],
    ["request", request_id],
    ["agent", question.agent_name],
    ["tool", `${question.tool}${effect ? ` (${describeEffect(effect)})` : ""}`],
    ["part of", describeParents(parents)],
    ["asked", `${question.asked_at} (${formatAge(question.asked_at, new Date())})`],
    ["expires", question.decision === null ? question.expires_at : null],
    ["answer", question.decision],
    ["by", question.answered_by],
    ["at", question.answered_at],
    ["message", question.message],
    ["remembered", question.remember && "for the session"],
  ];
  const visibleRows = rows.flatMap(([name, value]): [string, string][] =>
    value ? [[name, escapeInvisible(value)]] : [],
  );
  write(1, `${formatColumns(visibleRows).join("\n")}\n\n`);
  for (const line of toInputLines(question.input)) write(1, `  ${line}\n`);
  if (question.edited_input !== null && question.edited_input !== undefined) {
    write(1, "\nallowed instead\n");
    for (const line of toInputLines(question.edited_input)) write(1, `  ${line}\n`);
  }
  if (question.decision === null && !input.options["quiet"])
    write(
      2,
      `Answer: ${findDroverCommand()} runs approve ${toHintId(run_id)} ${quoteForShell(request_id)}\n        ${findDroverCommand()} runs deny ${toHintId(run_id)} ${quoteForShell(request_id)} --message "..."\n`,
    );
  return 0;
}
