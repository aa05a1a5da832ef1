import { questionSchema } from "../../model/question.ts";
import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";

export const questionContracts = {
  "GET /questions": {
    id: "listQuestions",
    summary: "List what runs ask people, oldest first",
    query: schemas.questionsQuerySchema,
    responses: ok("A page of the caller's own; for an admin of all", schemas.questionPageSchema),
  },
  "POST /runs/{run_id}/permissions/{request_id}": {
    id: "answerQuestion",
    summary: "Answer what a run asks: allow, deny or stop",
    body: schemas.answerSchema,
    responses: {
      200: { description: "The question with its answer", schema: questionSchema },
      409: { description: "Somebody answered it first, it has expired, or a later attempt asked again" },
    },
  },
  "POST /runs/{run_id}/resume": {
    id: "resumeRun",
    summary: "Continue a parked run now, whatever its budget or usage limit",
    responses: {
      200: { description: "The run, pending", schema: schemas.runSchema },
      409: { description: "The run is not parked, or waits for an answer" },
    },
  },
  "POST /runs/{run_id}/input": {
    id: "sendInput",
    summary: "Send a message to a run that is at work",
    body: schemas.runInputSchema,
    responses: {
      204: { description: "Sent to its runner" },
      409: { description: "The run is not at work, or its executor reads no messages while it works" },
    },
  },
  "GET /usage": {
    id: "getUsage",
    summary: "Sum up tokens and cost by agent, UTC day or session",
    query: schemas.usageQuerySchema,
    responses: ok("What the caller's own runs used; for an admin all runs", schemas.usageSummarySchema),
  },
} as const satisfies Record<string, Contract>;
