import { correlationSchema } from "../model/execution.ts";
import * as z from "zod";
import { agentSchema } from "../model/agent.ts";
import { runEventSchema } from "../model/event.ts";
import { estimateJsonSize } from "../model/event-size.ts";
import { newDemandsSchema, runModes } from "../model/demands.ts";
import { parkReasons } from "../model/executor.ts";
import { maxStoredFiles, sessionFileTypes } from "../model/session-state.ts";
import { failureReasons, stopReasons } from "../model/states.ts";
import { capabilitiesSchema } from "./capabilities-schema.ts";

// The schemas of the runner protocol. Handlers pass the parsed values straight to the port, so a field that one side lacks
// does not compile.

const name = z.string().min(1).max(400);
const number = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const attempt = z.number().int().min(1).max(1_000_000);
const attemptFields = { run_id: name, attempt };

/** Accepts null as an empty list, because some languages serialize it that way. */
function createListSchema<T extends z.ZodType>(item: T, max: number) {
  return z
    .array(item)
    .max(max)
    .nullish()
    .transform((list) => list ?? []);
}

/** Limit for an agent definition or an executor config, because every list response includes them. */
const maxDefinitionLength = 256 * 1024;
const tooLongMessage = `longer than ${maxDefinitionLength} characters`;

function isSmall(value: unknown): boolean {
  return estimateJsonSize(value, maxDefinitionLength) <= maxDefinitionLength;
}

/** An agent that the runner offers. As in an agent file, the default type depends on whether there is a command. */
const runnerAgentSchema = agentSchema
  .extend({ demands: newDemandsSchema.optional() })
  .partial({ type: true })
  .refine(isSmall, tooLongMessage)
  .transform((agent) => ({ ...agent, type: agent.type ?? (agent.command === null ? "autonomous" : "procedural") }));

const maxSlots = 10_000;

export const registrationSchema = z.strictObject({
  protocol: z.literal(1).default(1),
  /** If missing, the runner is identified by its host, directory, profile and name. */
  runner_key: z.string().min(16).max(400).exactOptional(),
  registration_id: name.exactOptional(),
  name: name.exactOptional(),
  hostname: name,
  project_dir: z.string().min(1).max(4096),
  executor_profile: name,
  executor: z.strictObject({
    type: name,
    command: z.string().max(4096).exactOptional(),
    module: z.string().max(4096).exactOptional(),
    config: z.record(z.string(), z.unknown()).refine(isSmall, tooLongMessage).default({}),
    can: capabilitiesSchema.exactOptional(),
  }),
  tags: createListSchema(name, 100),
  require_matching_tags: z.boolean().default(false),
  agents: createListSchema(runnerAgentSchema, 1000),
  slots: z.number().int().min(1).max(maxSlots).default(1),
  only_agent: name.exactOptional(),
  place_id: name.exactOptional(),
  only_pinned: z.boolean().exactOptional(),
});

export const pollSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  claim_id: name,
  want: z.number().int().min(0).max(maxSlots),
  hold_ms: z.number().int().min(1).max(86_400_000).exactOptional(),
  shortage: z.string().max(1000).exactOptional(),
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
    why: z.enum(parkReasons),
    until: z.iso.datetime().exactOptional(),
    message: z.string().exactOptional(),
  }),
]);

const numberedEventSchema = z.strictObject({
  n: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  at: z.iso.datetime(),
  // The coordinator writes the result event when it receives the finish.
  event: runEventSchema.refine(({ type }) => type !== "result", "a result is reported as the finish of its run"),
});

/** Limit for all lists of a report together, because validating an entry is expensive. */
const maxEntries = 20_000;

/** Counts the entries before any of them is validated. */
function refuseTooMany(body: unknown, context: z.RefinementCtx): unknown {
  const entries = ["events", "partials", "finishes"].flatMap((field) => listIn(body, field));
  const events = entries.map((entry) => listIn(entry, "events").length);
  const held = listIn(body, "held").length;
  if (held <= maxSlots && events.reduce((sum, count) => sum + count, entries.length) <= maxEntries) return body;
  const message =
    held > maxSlots ? `more than ${maxSlots} held runs` : `more than ${maxEntries} events, partials and finishes`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
}

function listIn(value: unknown, field: string): readonly unknown[] {
  const list: unknown = typeof value === "object" && value !== null ? Reflect.get(value, field) : null;
  return Array.isArray(list) ? list : [];
}

const wholeReportSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  held: z.array(z.tuple([name, attempt])),
  as_of_claim: name.nullable(),
  events: z.array(z.strictObject({ ...attemptFields, events: z.array(numberedEventSchema) })),
  partials: z.array(
    z.strictObject({
      ...attemptFields,
      delta: z.strictObject({ kind: z.enum(["assistant", "output"]), text: z.string() }),
    }),
  ),
  finishes: z.array(z.strictObject({ ...attemptFields, last_n: number, outcome: outcomeSchema })),
});
export const reportSchema = z.preprocess(refuseTooMany, wholeReportSchema);

/** A number in the query string; the body is the file itself. */
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
export const uploadResponseSchema = z.object({ upload: z.literal("stored") });

export const deletedSessionsRequestSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  session_ids: z.array(name).max(10_000),
});
export const deletedSessionsResponseSchema = z.object({ gone: z.array(z.string()) });

const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/, "not base64");
const path = z.string().min(1).max(4096);
const sessionFileSchema = z.strictObject({ path, type: z.enum(sessionFileTypes), bytes: base64 });
export const loadSessionSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  ...attemptFields,
  files_after: z.string().max(4096).exactOptional(),
});
export const loadedSessionSchema = z.discriminatedUnion("load", [
  z.object({ load: z.literal("fenced") }),
  z.object({
    load: z.literal("loaded"),
    state: z.object({ format: z.string(), bytes: z.string(), portable: z.boolean(), here: z.boolean() }).nullable(),
    files: z.array(sessionFileSchema),
    more: z.boolean(),
  }),
]);
export const saveSessionSchema = z.strictObject({
  runner_id: name,
  epoch: number,
  ...attemptFields,
  n: number,
  events: z.array(numberedEventSchema).max(10_000),
  format: name,
  bytes: base64.nullable(),
  portable: z.boolean(),
  files: z.array(z.union([sessionFileSchema, z.strictObject({ path, type: z.null() })])).max(maxStoredFiles),
  all_files: z.boolean().exactOptional(),
});
export const savedSessionSchema = z.discriminatedUnion("save", [
  z.object({ save: z.literal("saved"), budget: z.literal("spent").exactOptional() }),
  z.object({ save: z.enum(["fenced", "too_large"]) }),
  z.object({ save: z.literal("gap"), n: z.number().int() }),
]);

export const deregisterSchema = z.strictObject({ runner_id: name, epoch: number });

export const registrationResultSchema = z.object({
  runner_id: z.string(),
  epoch: z.number().int(),
  lease_ms: z.number(),
  store_id: z.string().min(1),
  max_file_bytes: z.number().int().positive(),
  poll_silence_ms: z.number().int().positive().exactOptional(),
  max_hold_ms: z.number().int().positive().exactOptional(),
});
export const enrolledSchema = z.object({ token: z.string(), token_id: z.string(), subject: z.string() });

const answerSchema = z.discriminatedUnion("decision", [
  z.object({
    decision: z.literal("allow"),
    input: z.unknown().exactOptional(),
    remember: z.literal("session").exactOptional(),
  }),
  z.object({ decision: z.literal("deny"), message: z.string().exactOptional() }),
  z.object({ decision: z.literal("stop"), message: z.string().exactOptional() }),
]);
const inputSchema = z.object({ text: z.string(), seq: z.number().int() });
const orderFields = { no: z.number().int(), run_id: z.string(), attempt: z.number().int() };
export const pollResponseSchema = z.object({
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
        continues: z.boolean(),
        executor_session_id: z.string().nullable(),
        forked_from: z.string().nullable(),
        fork_at_turn: z.number().int().nullable(),
        agent: agentSchema,
        parameters: z.record(z.string(), z.unknown()),
        prompt: z.string().nullable(),
        project_dir: z.string().nullable(),
        attended: z.boolean(),
        answers: z.array(
          z.object({ request_id: z.string(), tool: z.string(), input: z.unknown(), answer: answerSchema }),
        ),
        inputs: z.array(inputSchema),
        granted_tools: z.array(z.string()),
        executor_config: z.record(z.string(), z.unknown()),
      }),
    }),
  ),
  orders: z.array(
    z.union([
      z.object({ ...orderFields, stop: z.enum(stopReasons) }),
      z.object({ ...orderFields, answer: z.object({ request_id: z.string(), answer: answerSchema }) }),
      z.object({ ...orderFields, input: inputSchema }),
    ]),
  ),
});
const attempts = z.array(z.object({ run_id: z.string(), attempt: z.number().int() }));
export const reportResponseSchema = z.object({
  acked: z.array(z.object({ run_id: z.string(), attempt: z.number().int(), n: z.number().int() })),
  fenced: attempts,
  abandon: attempts,
  over_budget: attempts.exactOptional(),
});
