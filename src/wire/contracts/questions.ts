import { questionSchema } from "../../model/question.ts";
import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const questionContracts = {
  "GET /questions": {
    id: "listQuestions",
    summary: "List the questions that runs ask people, oldest first",
    query: schemas.questionsQuerySchema,
    responses: ok(
      "A page of questions from the caller's own runs; for an admin, from all runs",
      schemas.questionPageSchema,
    ),
  },
  "POST /runs/{run_id}/permissions/{request_id}": {
    id: "answerQuestion",
    summary: "Answer a run's question with allow, deny or stop",
    body: schemas.answerSchema,
    responses: {
      200: { description: "The question with its answer", schema: questionSchema },
      409: { description: "Already answered, expired, or asked again by a later attempt" },
    },
  },
  "POST /runs/{run_id}/resume": {
    id: "resumeRun",
    summary: "Continue a parked run now, regardless of its budget or usage limit",
    responses: {
      200: { description: "The run, pending", schema: schemas.runSchema },
      409: { description: "The run is not parked, or is waiting for an answer" },
    },
  },
  "POST /runs/{run_id}/input": {
    id: "sendInput",
    summary: "Send a message to a running run",
    body: schemas.runInputSchema,
    responses: {
      204: { description: "Sent to the runner" },
      409: { description: "The run is not running, or its executor cannot read messages while it works" },
    },
  },
  "GET /usage": {
    id: "getUsage",
    summary: "Sum up tokens and cost by agent, UTC day or session",
    query: schemas.usageQuerySchema,
    responses: ok("Usage of the caller's own runs; for an admin, of all runs", schemas.usageSummarySchema),
  },
} as const satisfies Record<string, Contract>;
