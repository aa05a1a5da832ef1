import * as z from "zod";
import { agentSchema } from "../model/agent.ts";
import { errorCodes } from "../model/errors.ts";
import { runEventSchema, usageSchema } from "../model/event.ts";
import { executionEndSchema, executionStartSchema } from "../model/execution.ts";
import { storedFileSchema } from "../model/file-schema.ts";
import { demandsSchema, newDemandsSchema } from "../model/demands.ts";
import { questionSchema, usageRowSchema } from "../model/question.ts";
import { runSchema } from "../model/run.ts";
import { searchMatchSchema } from "../model/search.ts";
import { maxSearchTerms, parseSearchTerms } from "../model/search-terms.ts";
import { sessionNodeSchema, sessionSchema, sessionVersionSchema } from "../model/session.ts";
import { runStatuses } from "../model/states.ts";
import { statsSchema } from "../model/stats.ts";
import { tokenKinds, tokenRoles } from "../model/token.ts";
import { capabilitiesSchema } from "./capabilities-schema.ts";
import { deliveryStatuses } from "../model/webhook.ts";
import { keyIdPattern, noncePattern } from "./proof-request.ts";
import { batchItemSchema, submitInput } from "./submit-input.ts";

/** A page of a list. `next_cursor` is null on the last page. */
export function createPageSchema<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next_cursor: z.string().nullable() });
}

export const problemSchema = z.object({
  title: z.string(),
  status: z.number().int(),
  code: z.enum(Object.keys(errorCodes)),
  detail: z.string(),
  faults: z.array(z.object({ path: z.string(), message: z.string() })),
  next: z.string().optional(),
});

export const runRowSchema = runSchema.omit({ parameters: true, prompt: true, result_text: true, result_data: true });

const maxBatch = 1000;
export const batchSchema = z.strictObject({ runs: z.array(batchItemSchema).min(1).max(maxBatch) });
/** Does not check the items, because an invalid one must not cause the others to be refused. */
export const uncheckedBatchSchema = z.strictObject({ runs: z.array(z.unknown()).min(1).max(maxBatch) });
export const batchResultSchema = z.object({
  items: z.array(z.union([z.object({ run: runSchema }), z.object({ problem: problemSchema })])),
});

const time = z.iso.datetime({ offset: true });
const shortText = z.string().min(1).max(400);
/** A list in a query string is comma-separated; callers in this process pass an array. */
const statusList = z.preprocess(
  (value) => (typeof value === "string" ? value.split(",") : value),
  z.array(z.enum(runStatuses)).min(1),
);
const limit = z.coerce.number().int().min(1).max(1000).default(50);
/** The position of an event: its `seq` within a run, its `cursor` among all runs. */
const position = z.int().min(0);
const optionalPosition = z.coerce.number().pipe(position).optional();

const searchText = z
  .string()
  .max(1000)
  .superRefine((text, context) => {
    const { length } = parseSearchTerms(text);
    if (length === 0) context.addIssue({ code: "custom", message: "contains no word to search for" });
    if (length > maxSearchTerms)
      context.addIssue({ code: "custom", message: `contains more than ${maxSearchTerms} words` });
  })
  .describe(
    'Words that must all occur in a run\'s prompt, parameters, result, error or tool input; use "quotes" for a phrase',
  );

const runFilterShape = {
  agent_name: shortText.optional(),
  parent_run_id: shortText.optional(),
  session_id: shortText.optional(),
  task_id: shortText.optional(),
  step_id: shortText.optional(),
  tool_call_id: shortText.optional(),
  worktree_id: shortText.optional(),
  repo_sha: shortText.optional(),
  since: time.optional(),
  until: time.optional(),
};

export const pageQuerySchema = z.strictObject({ limit, cursor: z.string().max(200).optional() });
/** For lists that are usually short and read in full: the default page size is the maximum. */
export const fullPageQuerySchema = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).default(1000),
  cursor: z.string().max(2000).optional(),
});
const idSuffix = z
  .string()
  .regex(/^[0-9a-f-]{4,36}$/)
  .describe("The last 4 to 36 characters of the id; only the newest 100,000 entries are searched");
export const runsQuerySchema = z.strictObject({
  ...runFilterShape,
  created_by: shortText.optional(),
  id_suffix: idSuffix.optional(),
  status: statusList.optional(),
  search: searchText.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
/** With `search`, includes where each run matches and whether the index is still being built. */
export const runPageSchema = createPageSchema(runRowSchema.extend({ match: searchMatchSchema.optional() })).extend({
  indexing: z.boolean().optional().describe("With search: true while earlier runs are still being indexed"),
});
const maxStatsDays = 90;
export const statsQuerySchema = z
  .strictObject({
    since: time.optional().describe("Defaults to one day before `until`"),
    until: time.optional().describe("Defaults to now"),
  })
  .superRefine(({ since, until }, context) => {
    const days = (Date.parse(until ?? new Date().toISOString()) - Date.parse(since ?? until ?? "")) / 86_400_000;
    const addIssue = (message: string) => context.addIssue({ code: "custom", path: ["since"], message });
    if (days < 0) addIssue("is later than until");
    if (days > maxStatsDays) addIssue(`is more than ${maxStatsDays} days before until`);
  });
export const eventsQuerySchema = z.strictObject({ after: optionalPosition, limit });
const runList = z.preprocess(
  (value) => (typeof value === "string" ? value.split(",") : value),
  z.array(shortText).max(100),
);
export const allEventsQuerySchema = z.strictObject({
  after: optionalPosition,
  limit,
  follow: runList.optional().describe("Runs whose partial output the stream also sends"),
  stream: shortText
    .optional()
    .describe("A name chosen by the caller, for changing `follow` with POST /events/follow while the stream is open"),
});
export const followRequestSchema = z.strictObject({ stream: shortText, follow: z.array(shortText).max(100) });
export const lastEventIdSchema = z.object({ "last-event-id": optionalPosition });
/** A boolean in a query string. */
const flag = z.preprocess((value) => (value === "true" ? true : value === "false" ? false : value), z.boolean());
export const executionsQuerySchema = z.strictObject({
  run_id: shortText.optional(),
  open: flag.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
export const deliveriesQuerySchema = z.strictObject({
  webhook: shortText.optional(),
  run_id: shortText.optional(),
  status: z.enum(deliveryStatuses).optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
export const questionsQuerySchema = z.strictObject({
  open: flag.default(true).describe("false lists questions that were answered, expired or superseded"),
  run_id: shortText.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
export const questionPageSchema = createPageSchema(questionSchema).extend({
  count: z.number().int().describe("Total over all pages, capped at 10,000"),
});
export const answerSchema = z
  .strictObject({
    decision: z.enum(["allow", "deny", "stop"]),
    input: z.unknown().describe("With allow: replaces the tool's input"),
    remember: z
      .literal("session")
      .optional()
      .describe("With allow: allows this tool for the rest of the session without asking again"),
    message: z.string().min(1).max(10_000).optional().describe("With deny or stop: the reason, which the model reads"),
  })
  .partial({ input: true })
  .superRefine(({ decision, input, remember, message }, context) => {
    const addIssue = (path: string, decisions: string) =>
      context.addIssue({ code: "custom", path: [path], message: `only valid if decision is ${decisions}` });
    if (decision !== "allow" && input !== undefined) addIssue("input", "allow");
    if (decision !== "allow" && remember !== undefined) addIssue("remember", "allow");
    if (decision === "allow" && message !== undefined) addIssue("message", "deny or stop");
  });
export const runInputSchema = z.strictObject({ text: z.string().min(1).max(1_000_000) });
const day = z.iso.date();
export const usageQuerySchema = z.strictObject({
  by: z.enum(["agent", "day", "session"]).default("agent"),
  since: day.optional().describe("The first UTC day"),
  until: day.optional().describe("Only days before this UTC day"),
  agent_name: shortText.optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(1000),
});
export const usageSummarySchema = z.object({ items: z.array(usageRowSchema) });
export const sessionsQuerySchema = z.strictObject({
  agent_name: shortText.optional(),
  created_by: shortText.optional(),
  id_suffix: idSuffix.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});

/** Stopping every run requires `all: true`, so that an empty filter does not stop everything by mistake. */
export const stopRunsSchema = z
  .strictObject({
    ...runFilterShape,
    status: z.array(z.enum(runStatuses)).min(1).optional(),
    all: z.literal(true).optional(),
  })
  .refine((filter) => Object.keys(filter).length > 0, {
    message: "give a filter, or all: true for every run that has not ended",
  });
export const stopRunsResultSchema = z.object({
  cancelled: z.array(z.string()),
  stopping: z.array(z.string()),
  untouched: z.array(z.string()),
});

export const storedEventSchema = z.object({
  run_id: z.string(),
  seq: z.number().int(),
  attempt: z.number().int(),
  n: z.number().int().nullable(),
  at: z.string().describe("By the runner's clock"),
  received_at: z.string().exactOptional().describe("By the coordinator's clock; missing in older records"),
  cursor: z.number().int(),
  event: runEventSchema,
});

/** Pass `next_cursor` as `after` to read the next page. */
export const eventPageSchema = z.object({ items: z.array(storedEventSchema), next_cursor: position.nullable() });

export const whySchema = z.object({
  status: z.enum(runStatuses),
  why: z.array(z.object({ demand: z.string(), detail: z.string() })),
});

/** An agent's own fields and its source. */
export const listedAgentSchema = agentSchema.extend({
  source: z.enum(["file", "api", "runner"]),
  runner_id: z.string().nullable(),
  fault: z.string().optional().describe("The error in its file; this definition is the last valid one"),
});

/** The path has the name; the body may repeat it. The handler validates the definition with the rules for agent files. */
export const putAgentSchema = agentSchema
  .extend({ demands: newDemandsSchema.optional() })
  .partial({ name: true, type: true });

export const runnerSchema = z.object({
  runner_id: z.string(),
  owner: z.string(),
  name: z.string().nullable(),
  hostname: z.string(),
  place_id: z.string().nullable(),
  project_dir: z.string(),
  executor_profile: z.string(),
  executor: z.object({
    type: z.string(),
    command: z.string().exactOptional(),
    module: z.string().exactOptional(),
    config: z.record(z.string(), z.unknown()),
    can: capabilitiesSchema.exactOptional(),
  }),
  tags: z.array(z.string()),
  require_matching_tags: z.boolean(),
  only_pinned: z.boolean(),
  slots: z.number().int(),
  only_agent: z.string().nullable(),
  agents: z.array(z.string()),
  status: z.enum(["online", "draining", "lost"]),
  epoch: z.number().int(),
  running: z.number().int(),
  registered_at: z.string(),
  last_seen_at: z.string(),
});
export const drainSchema = z.strictObject({ draining: z.boolean().default(true) });

/** A session with its runs, newest first, and the sessions it was forked from and the forks made from it. */
export const sessionWithRunsSchema = sessionSchema.extend({
  versions: z.array(sessionVersionSchema),
  ancestors: z.array(sessionNodeSchema),
  descendants: z.array(sessionNodeSchema),
});

export const bindSessionSchema = z.strictObject({ executor_session_id: z.string().min(1).max(400) });
export const executionSchema = z.object({
  run_id: z.string(),
  attempt: z.number().int(),
  received_at: z.string().describe("When the start was recorded, by the coordinator's clock"),
  end_received_at: z.string().nullable().describe("When the end was recorded, by the coordinator's clock"),
  start: executionStartSchema,
  end: executionEndSchema.nullable(),
});

/** Text that appears in lists and in the audit records of everything the token's bearer does. */
const printable = z
  .string()
  .max(200)
  .refine((text) => !/\p{C}/u.test(text), { message: "contains a character that cannot be shown" });
export const newTokenSchema = z.strictObject({
  role: z.enum(tokenRoles),
  subject: printable.min(1).refine((text) => text.trim() === text, { message: "starts or ends with a space" }),
  label: printable.optional(),
  expires_at: time.optional(),
  /** For role `runner`: a token that a runner exchanges once for its own. */
  enrolment: z.boolean().default(false),
});
export const tokenSchema = z.object({
  token_id: z.string(),
  kind: z.enum(tokenKinds),
  role: z.enum(tokenRoles),
  subject: z.string(),
  label: z.string().nullable(),
  created_by: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
  used_at: z.string().nullable(),
});
/** Only this and the response to a rotation ever contain the token itself. */
export const createdTokenSchema = tokenSchema.extend({ token: z.string() });
export const rotatedTokenSchema = createdTokenSchema.extend({
  /** The replaced token, when it stops working, and whether this request was made with it. */
  replaces: z.object({ token_id: z.string(), ends_at: z.string(), asked_with: z.boolean() }),
});
export const revokeTokensSchema = z.strictObject({ subject: z.string().min(1).max(200) });
export const revokedTokensSchema = z.object({ revoked: z.array(z.string()) });
export const rotateTokenSchema = z.strictObject({
  /** How long the old token stays valid; 0 revokes it at once. */
  overlap_seconds: z.number().int().min(0).max(604_800).default(300),
});

/** `code` is null if auth is off, because no browser has to sign in. */
export const signInLinkSchema = z.object({ code: z.string().nullable(), expires_at: z.string().nullable() });
export const signInSchema = z.strictObject({ code: z.string().min(1).max(200) });
export const meSchema = z.object({
  subject: z.string(),
  role: z.enum(tokenRoles),
  token_id: z.string(),
  /** How the request was authenticated: by a browser's cookie, by a bearer token, or not at all because auth is off. */
  by: z.enum(["browser", "bearer", "auth_off"]),
  version: z.string().describe("The version of this coordinator"),
  engine: z.enum(["sqlite", "postgres"]).optional().describe("The database engine of its record"),
  started_at: z.string().optional().describe("When this coordinator started"),
});

export const healthSchema = z.object({ status: z.literal("ok"), version: z.string(), protocol: z.literal(1) });

export const proofRequestSchema = z.strictObject({
  nonce: z.string().regex(noncePattern),
  key_id: z.string().regex(keyIdPattern),
  origin: z.string().max(100),
});
export const proofSchema = z.object({ proof: z.string() });

/** The schemas that have a name in the OpenAPI document. */
const namedSchemas = {
  Problem: problemSchema,
  Run: runSchema,
  RunSummary: runRowSchema,
  RunMatch: searchMatchSchema,
  Stats: statsSchema,
  RunRequest: submitInput.body,
  BatchItem: batchItemSchema,
  RunEvent: runEventSchema,
  Event: storedEventSchema,
  EventPage: eventPageSchema,
  Demands: demandsSchema,
  Usage: usageSchema,
  File: storedFileSchema,
  Execution: executionSchema,
  ExecutionStart: executionStartSchema,
  ExecutionEnd: executionEndSchema,
  Agent: listedAgentSchema,
  AgentDefinition: agentSchema,
  NewAgent: putAgentSchema,
  Question: questionSchema,
  UsageRow: usageRowSchema,
  Session: sessionSchema,
  SessionWithRuns: sessionWithRunsSchema,
  Runner: runnerSchema,
  Token: tokenSchema,
  NewToken: newTokenSchema,
  CreatedToken: createdTokenSchema,
  RotatedToken: rotatedTokenSchema,
};
for (const [id, schema] of Object.entries(namedSchemas)) z.globalRegistry.add(schema, { id });

export { agentSchema, runSchema, sessionSchema, storedFileSchema };
