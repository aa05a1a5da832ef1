import * as z from "zod";
import { type Contract, ok } from "../contract.ts";
import * as runner from "../runner-schemas.ts";
import * as schemas from "../schemas.ts";

/** Refusals of a runner whose registration is missing or replaced. */
const registrationRefusals = {
  404: { description: "The runner is not registered with this coordinator" },
  409: { description: "A newer registration has replaced this one" },
};

export const runnerContracts = {
  "GET /runners": {
    id: "listRunners",
    summary: "List runners",
    query: schemas.fullPageQuerySchema,
    responses: ok(
      "A page of the caller's own runners, by id; for an admin, of all runners",
      schemas.createPageSchema(schemas.runnerSchema),
    ),
  },
  "POST /runners/{runner_id}/drain": {
    id: "drainRunner",
    summary: "Stop assigning runs to a runner, or resume with draining: false",
    body: schemas.drainSchema.prefault({}),
    responses: { 204: { description: "Drain state updated" } },
  },
  "POST /runner/enroll": {
    id: "enrollRunner",
    summary: "Exchange a single-use enrolment token for the runner's own token",
    responses: {
      201: { description: "The token; it is shown only once", schema: runner.enrolledSchema },
      409: { description: "The enrolment token was already used, was revoked or has expired" },
    },
  },
  "POST /runner/register": {
    id: "registerRunner",
    summary: "Runner: register, or register again",
    body: runner.registrationSchema,
    responses: {
      200: { description: "The runner's id and epoch", schema: runner.registrationResultSchema },
      409: { description: "Another live runner has this identity" },
    },
  },
  "POST /runner/poll": {
    id: "pollRunner",
    summary: "Runner: wait for runs and orders",
    body: runner.pollSchema,
    responses: {
      200: { description: "Claims and orders, possibly none", schema: runner.pollResponseSchema },
      ...registrationRefusals,
    },
  },
  "POST /runner/report": {
    id: "reportRunner",
    summary: "Runner: report events and finished runs; also serves as the heartbeat",
    body: runner.reportSchema,
    responses: {
      200: {
        description: "The events that are stored, and the attempts this runner has lost",
        schema: runner.reportResponseSchema,
      },
      ...registrationRefusals,
    },
  },
  "POST /runner/files": {
    id: "uploadRunFile",
    summary: "Runner: upload one file of a run; the body is the file",
    query: runner.uploadQuerySchema,
    takesBytes: true,
    responses: {
      200: { description: "Stored as a file of this attempt", schema: runner.uploadResponseSchema },
      404: registrationRefusals[404],
      409: { description: "The attempt does not belong to this runner, or no longer does" },
    },
  },
  "POST /runner/sessions": {
    id: "findDeletedSessions",
    summary: "Runner: ask which of the listed sessions no longer exist",
    body: runner.deletedSessionsRequestSchema,
    responses: {
      200: { description: "Sessions whose directories can be removed", schema: runner.deletedSessionsResponseSchema },
      ...registrationRefusals,
    },
  },
  "POST /runner/session/load": {
    id: "loadSession",
    summary: "Runner: load the state from which a run continues its session",
    body: runner.loadSessionSchema,
    responses: { 200: { description: "The state, or a page of its files", schema: runner.loadedSessionSchema } },
  },
  "POST /runner/session/save": {
    id: "saveSession",
    summary: "Runner: save the state of a run's session, with the events it covers",
    body: runner.saveSessionSchema,
    responses: { 200: { description: "Whether the state was stored", schema: runner.savedSessionSchema } },
  },
  "POST /runner/deregister": {
    id: "deregisterRunner",
    summary: "Runner: deregister",
    body: runner.deregisterSchema,
    responses: { 200: { description: "Deregistered", schema: z.object({}) } },
  },
} as const satisfies Record<string, Contract>;
