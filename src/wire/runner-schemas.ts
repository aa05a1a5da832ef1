import { correlationSchema } from "../model/execution.ts";
import { z } from "zod";
import { agentSchema } from "../model/agent.ts";
import { runEventSchema } from "../model/event.ts";
import { runModes } from "../model/run.ts";
import { failureReasons, stopReasons } from "../model/states.ts";

/** What runners send and get. Handlers pass these straight to the port, so that a field one side lacks does not compile. */
const name = z.string().min(1).max(400);
const number = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const attempt = z.number().int().min(1).max(1_000_000);
const ofAttempt = { run_id: name, attempt };

export const registrationSchema = z.strictObject({
  protocol: z.literal(1),
  runner_key: z.string().min(16).max(400),
  registration_id: name.exactOptional(),
  name: name.exactOptional(),
  hostname: name,
  project_dir: z.string().min(1).max(4096),
  executor_profile: name,
  executor: z.strictObject({
    type: name,
    command: z.string().max(4096).exactOptional(),
    module: z.string().max(4096).exactOptional(),
    config: z.record(z.string(), z.unknown()),
  }),
  tags: z.array(name).max(1000),
  require_matching_tags: z.boolean(),
  agents: z.array(agentSchema).max(10_000),
  slots: z.number().int().min(1).max(10_000),
  only_agent: name.exactOptional(),
});

export const pollSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  claim_id: name,
  want: z.number().int().min(0).max(10_000),
  ack_order: number,
});

const exitCode = z.number().int().nullable();
const outcomeSchema = z.discriminatedUnion("status", [
  z.strictObject({
    status: z.literal("completed"),
    exit_code: exitCode,
    text: z.string().nullable(),
    data: z.unknown().exactOptional(),
  }),
  z.strictObject({
    status: z.literal("failed"),
    reason: z.enum(failureReasons),
    message: z.string(),
    exit_code: exitCode,
    text: z.string().exactOptional(),
    data: z.unknown().exactOptional(),
  }),
  z.strictObject({ status: z.literal("cancelled"), by: z.enum(["user", "shutdown"]) }),
  z.strictObject({
    status: z.literal("parked"),
    why: z.enum(["usage_limit", "budget"]),
    until: z.string().exactOptional(),
  }),
]);

/** n counts from 1. */
const numberedEventSchema = z.strictObject({
  n: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  at: z.iso.datetime(),
  // The result of a run is its finish.
  event: runEventSchema.refine(({ type }) => type !== "result", "a result comes with the finish of its run"),
});

export const reportSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  held: z.array(z.tuple([name, attempt])).max(100_000),
  as_of_claim: name.nullable(),
  events: z.array(z.strictObject({ ...ofAttempt, events: z.array(numberedEventSchema) })),
  partials: z.array(
    z.strictObject({
      ...ofAttempt,
      delta: z.strictObject({ kind: z.enum(["assistant", "output"]), text: z.string() }),
    }),
  ),
  finishes: z.array(z.strictObject({ ...ofAttempt, last_n: number, outcome: outcomeSchema })),
});

/** In the query: the body is the file. */
const decimal = z
  .string()
  .regex(/^\d{1,15}$/, "not a number")
  .transform(Number);
export const uploadQuerySchema = z.strictObject({
  runner_id: name,
  epoch: decimal,
  run_id: name,
  attempt: decimal,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "not a SHA-256 in lower-case hexadecimal"),
  size: decimal,
});
export const uploadAnswerSchema = z.object({ upload: z.literal("stored") });

export const sessionsOfRunnerSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  session_ids: z.array(name).max(10_000),
});
export const goneSessionsSchema = z.object({ gone: z.array(z.string()) });

export const deregisterSchema = z.strictObject({ runner_id: name, epoch: number });

export const registeredSchema = z.object({
  runner_id: z.string(),
  epoch: z.number().int(),
  lease_ms: z.number(),
  store_id: z.string().min(1),
  max_file_bytes: z.number().int().positive(),
  poll_silence_ms: z.number().int().positive().exactOptional(),
});
export const enrolledSchema = z.object({ token: z.string(), token_id: z.string(), subject: z.string() });

const answerSchema = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("allow"), input: z.unknown().optional(), remember: z.boolean().optional() }),
  z.object({ decision: z.literal("deny"), message: z.string().optional() }),
  z.object({ decision: z.literal("stop") }),
]);
const orderOf = { no: z.number().int(), run_id: z.string(), attempt: z.number().int() };
export const pollAnswerSchema = z.object({
  claims: z.array(
    z.object({
      run_id: z.string(),
      attempt: z.number().int(),
      attempt_token: z.string(),
      correlation: correlationSchema,
      invocation: z.object({
        schema_version: z.literal(1),
        run_id: z.string(),
        attempt: z.number().int(),
        mode: z.enum(runModes),
        session_id: z.string(),
        executor_session_id: z.string().nullable(),
        forked_from: z.string().nullable(),
        agent: agentSchema,
        parameters: z.record(z.string(), z.unknown()),
        prompt: z.string().nullable(),
        project_dir: z.string().nullable(),
        attended: z.boolean(),
        executor_config: z.record(z.string(), z.unknown()),
      }),
    }),
  ),
  orders: z.array(
    z.union([
      z.object({ ...orderOf, stop: z.enum(stopReasons) }),
      z.object({ ...orderOf, answer: z.object({ request_id: z.string(), answer: answerSchema }) }),
      z.object({ ...orderOf, input: z.object({ text: z.string() }) }),
    ]),
  ),
});
const attempts = z.array(z.object({ run_id: z.string(), attempt: z.number().int() }));
export const reportAnswerSchema = z.object({
  acked: z.array(z.object({ run_id: z.string(), attempt: z.number().int(), n: z.number().int() })),
  fenced: attempts,
  abandon: attempts,
});
