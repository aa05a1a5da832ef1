import * as z from "zod";
import { type Contract, ok } from "../contract.ts";
import * as schemas from "../schemas.ts";
import { submitInput } from "../submit-input.ts";

const eventResponses = {
  200: {
    description: "A page of events; with Accept: text/event-stream, a stream that continues as events are stored",
    schema: schemas.eventPageSchema,
  },
  204: { description: "With Accept: text/event-stream: the run has ended and has no later events" },
};

export const runContracts = {
  "POST /runs": {
    id: "submitRun",
    summary: "Submit a run",
    ...submitInput,
    responses: {
      200: {
        description: "The run that an earlier request with this Idempotency-Key created",
        schema: schemas.runSchema,
      },
      201: { description: "The new run", schema: schemas.runSchema },
      404: { description: "No such agent or session" },
      409: {
        description: "Ambiguous agent name, conflicting demands, or an Idempotency-Key used for a different request",
      },
    },
  },
  "POST /runs/batch": {
    id: "submitRuns",
    summary: "Submit up to 1,000 runs at once",
    body: schemas.batchSchema,
    checkedBody: schemas.uncheckedBatchSchema,
    responses: ok(
      "For each item of the request, in order: the run, or the problem that caused its refusal",
      schemas.batchResultSchema,
    ),
  },
  "GET /runs": {
    id: "listRuns",
    summary: "List runs, or search them, newest first",
    query: schemas.runsQuerySchema,
    responses: ok("A page of runs, without parameters and results", schemas.runPageSchema),
  },
  "POST /runs/stop": {
    id: "stopRuns",
    summary: "Stop every run that matches a filter",
    body: schemas.stopRunsSchema,
    responses: ok("The ids of the matching runs, by outcome", schemas.stopRunsResultSchema),
  },
  "GET /runs/{run_id}": { id: "getRun", summary: "Get a run", responses: ok("The run", schemas.runSchema) },
  "POST /runs/{run_id}/stop": {
    id: "stopRun",
    summary: "Stop a run",
    responses: ok("The run, cancelled or stopping; a run that has ended is unchanged", schemas.runSchema),
  },
  "POST /runs/{run_id}/retry": {
    id: "retryRun",
    summary: "Submit the same request again as a new run",
    responses: {
      201: { description: "The new run", schema: schemas.runSchema },
      409: { description: "The run has not ended" },
    },
  },
  "GET /runs/{run_id}/why": {
    id: "explainPending",
    summary: "Explain why a run is pending, waiting or parked",
    responses: ok("Each unmet demand; empty if nothing holds the run back", schemas.whySchema),
  },
  "GET /runs/{run_id}/events": {
    id: "listRunEvents",
    summary: "Read or follow the events of a run",
    query: schemas.eventsQuerySchema,
    headers: schemas.lastEventIdSchema,
    responses: eventResponses,
  },
  "GET /events": {
    id: "listEvents",
    summary: "Read or follow the events of all runs, in the order they were stored",
    query: schemas.allEventsQuerySchema,
    headers: schemas.lastEventIdSchema,
    responses: { 200: eventResponses[200] },
  },
  "POST /events/follow": {
    id: "followPartials",
    summary: "Choose the runs whose partial output an open event stream also sends",
    body: schemas.followRequestSchema,
    responses: {
      204: { description: "Changed" },
      404: { description: "This coordinator has no open stream with that name" },
    },
  },
  "GET /runs/{run_id}/files": {
    id: "listRunFiles",
    summary: "List the files of a run",
    responses: ok("The files of the run's last attempt, by path", schemas.createPageSchema(schemas.storedFileSchema)),
  },
  "GET /runs/{run_id}/files/{path*}": {
    id: "getRunFile",
    summary: "Download a file of a run",
    headers: z.object({ "if-none-match": z.string().optional() }),
    responses: {
      200: { description: "The contents", media: "application/octet-stream", schema: z.string() },
      304: { description: "The contents match If-None-Match" },
    },
  },
  "GET /executions": {
    id: "listExecutions",
    summary: "List the audit records of spawned processes, newest first",
    query: schemas.executionsQuerySchema,
    responses: ok("A page of executions", schemas.createPageSchema(schemas.executionSchema)),
  },
  "GET /executions/{execution_id}": {
    id: "getExecution",
    summary: "Get an execution",
    responses: ok("The execution", schemas.executionSchema),
  },
} as const satisfies Record<string, Contract>;
