import type { Decision } from "../model/executor.ts";
import type { Question } from "../model/question.ts";
import { continueRun } from "./continue-run.ts";
import { findQuestion } from "./find-question.ts";
import { withRecord } from "./with-record.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { escapeInvisible } from "./question-view.ts";

const detach = { description: "without a coordinator: answer, but do not continue a parked run in this process" };

export const runsApprove: CommandSpec = {
  name: "runs approve",
  summary: "allow a tool call that a run asks about",
  placeholders: "RUN [REQUEST]",
  arity: [1, 2],
  examples: [
    ["drover runs approve 5c20e9d4", "its open question; add REQUEST if there are several"],
    ["drover runs approve 5c20e9d4 --remember", "and allow this tool for the rest of the session"],
    [`drover runs approve 5c20e9d4 --input '{"command": "npm ci"}'`, "allow it with different input"],
  ],
  options: {
    input: { placeholder: "JSON", description: "call the tool with this input instead" },
    remember: { description: "allow the tool for the rest of the session" },
    detach,
  },
  run: approve,
};

export const runsDeny: CommandSpec = {
  name: "runs deny",
  summary: "deny a tool call that a run asks about; the run continues without it",
  placeholders: "RUN [REQUEST]",
  arity: [1, 2],
  examples: [
    ['drover runs deny 5c20e9d4 --message "Use npm ci"', "with a reason that the model reads"],
    ["drover runs deny 5c20e9d4 --stop", "and stop the run"],
  ],
  options: {
    message: { placeholder: "TEXT", description: "the reason; the model reads it" },
    stop: { description: "also stop the run" },
    detach,
  },
  run: deny,
};

function approve(input: CommandInput): Promise<number> {
  const json = readText(input.options, "input");
  const editedInput = json === undefined ? {} : { input: parseInput(json) };
  const remember = input.options["remember"] ? ({ remember: "session" } as const) : {};
  return answer(input, { decision: "allow", ...editedInput, ...remember });
}

function deny(input: CommandInput): Promise<number> {
  const message = readText(input.options, "message");
  return answer(input, {
    decision: input.options["stop"] ? "stop" : "deny",
    ...(message === undefined || message === "" ? {} : { message }),
  });
}

async function answer(input: CommandInput, decision: Decision): Promise<number> {
  const { options, positionals } = input;
  const answerResult = await withRecord(input, async (client, hasCoordinator) => {
    const { run_id, request_id } = await findQuestion(client, positionals[0]!, positionals[1]);
    const question = await client.questions.answer(run_id, request_id, decision);
    return { question, run: await client.runs.get(run_id), hasCoordinator };
  });
  if (!answerResult) return 1;
  const { question, run, hasCoordinator } = answerResult;
  if (options["json"]) write(1, toJsonLine(question));
  else write(1, `${question.run_id}\t${question.request_id}\t${question.decision}\n`);
  if (!options["quiet"]) write(2, `${describeAnswer(question)}\n`);
  // Without a coordinator, only this process can continue the run.
  if (hasCoordinator || run.status !== "pending" || options["detach"]) return 0;
  return continueRun(input, run);
}

function describeAnswer({ tool, decision, edited_input, remember }: Question): string {
  if (decision === "stop") return `Denied ${escapeInvisible(tool)} and stopped the run.`;
  if (decision === "deny") return `Denied ${escapeInvisible(tool)}.`;
  const inputNote = edited_input === null || edited_input === undefined ? "" : " with different input";
  return `Allowed ${escapeInvisible(tool)}${inputNote}${remember ? " for the rest of the session" : ""}.`;
}

function parseInput(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw usageError(`--input is not valid JSON: ${error.message}.`, "runs approve", "--input");
  }
}
