import * as z from "zod";
import { type Contract, ok } from "../contract.ts";
import * as runner from "../runner-schemas.ts";
import * as schemas from "../schemas.ts";

/** How a runner is refused that is not, or no longer, registered. */
const registrationRefusals = {
  404: { description: "This runner is not registered here" },
  409: { description: "A newer registration has replaced this one" },
};

export const runnerContracts = {
  "GET /runners": {
    id: "listRunners",
    summary: "List runners",
    query: schemas.fullPageQuerySchema,
    responses: ok(
      "A page of the caller's own runners, by id; for an admin of all",
      schemas.pageOf(schemas.runnerSchema),
    ),
  },
  "POST /runners/{runner_id}/drain": {
    id: "drainRunner",
    summary: "Give a runner no further runs, or (draining: false) give it runs again",
    body: schemas.drainSchema.prefault({}),
    responses: { 204: { description: "Drain state updated" } },
  },
  "POST /runner/enroll": {
    id: "enrollRunner",
    summary: "Exchange an enrolment token, once, for the runner's own token",
    responses: {
      201: { description: "The token, which is shown only here", schema: runner.enrolledSchema },
      409: { description: "The enrolment token was used, revoked or has expired" },
    },
  },
  "POST /runner/register": {
    id: "registerRunner",
    summary: "Runner: register, or register again",
    body: runner.registrationSchema,
    responses: {
      200: { description: "Its id and epoch", schema: runner.registeredSchema },
      409: { description: "Another live runner has this identity" },
    },
  },
  "POST /runner/poll": {
    id: "pollRunner",
    summary: "Runner: wait for runs and orders",
    body: runner.pollSchema,
    responses: {
      200: { description: "Claims and orders, possibly none", schema: runner.pollAnswerSchema },
      ...registrationRefusals,
    },
  },
  "POST /runner/report": {
    id: "reportRunner",
    summary: "Runner: report events and ends of runs; also its heartbeat",
    body: runner.reportSchema,
    responses: {
      200: {
        description: "What is stored, and which attempts this runner has lost",
        schema: runner.reportAnswerSchema,
      },
      ...registrationRefusals,
    },
  },
  "POST /runner/files": {
    id: "uploadRunFile",
    summary: "Runner: upload one file of a run as the body",
    query: runner.uploadQuerySchema,
    takesBytes: true,
    responses: {
      200: { description: "Stored as a file of this attempt", schema: runner.uploadAnswerSchema },
      404: registrationRefusals[404],
      409: { description: "The attempt is not, or no longer, this runner's" },
    },
  },
  "POST /runner/sessions": {
    id: "findGoneSessions",
    summary: "Runner: ask which of these sessions have ended",
    body: runner.sessionsOfRunnerSchema,
    responses: {
      200: { description: "Sessions whose folders can be removed", schema: runner.endedSessionsSchema },
      ...registrationRefusals,
    },
  },
  "POST /runner/session/load": {
    id: "loadSession",
    summary: "Runner: load the state that a run continues its session from",
    body: runner.loadSessionSchema,
    responses: { 200: { description: "The state, or a page of its files", schema: runner.loadedSessionSchema } },
  },
  "POST /runner/session/save": {
    id: "saveSession",
    summary: "Runner: save the state of a run's session, with the events it covers",
    body: runner.saveSessionSchema,
    responses: { 200: { description: "Whether it was stored", schema: runner.savedSessionSchema } },
  },
  "POST /runner/deregister": {
    id: "deregisterRunner",
    summary: "Runner: sign off",
    body: runner.deregisterSchema,
    responses: { 200: { description: "Signed off", schema: z.object({}) } },
  },
} as const satisfies Record<string, Contract>;
