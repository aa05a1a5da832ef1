import { z } from "zod";
import { agentSchema } from "../model/agent.ts";
import { errorCodes } from "../model/errors.ts";
import { runEventSchema } from "../model/event.ts";
import { executionEndSchema, executionStartSchema } from "../model/execution.ts";
import { storedFileSchema } from "../model/file-schema.ts";
import { runSchema } from "../model/run.ts";
import { runRequestSchema } from "../model/run-request.ts";
import { sessionSchema, sessionVersionSchema } from "../model/session.ts";
import { runStatuses } from "../model/states.ts";
import { tokenRoles } from "../model/token.ts";

/** A list's page: `next_cursor` is null on the last one. */
export function pageOf<T extends z.ZodType>(item: T) {
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
/** Who triggered a run is not the caller's to say. */
export const submitSchema = runRequestSchema.omit({ trigger_type: true, retry_of: true });

const time = z.iso.datetime({ offset: true });
const shortText = z.string().min(1).max(400);
const statusList = z
  .string()
  .transform((text) => text.split(","))
  .pipe(z.array(z.enum(runStatuses)).min(1))
  .meta({ description: `one or more of ${runStatuses.join(", ")}, with commas between` });
const limit = z.coerce.number().int().min(1).max(1000).default(50);
const after = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

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
export const runsQuerySchema = z.strictObject({
  ...runFilterShape,
  status: statusList.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
export const eventsQuerySchema = z.strictObject({ after: after.optional(), limit });
export const executionsQuerySchema = z.strictObject({
  run_id: shortText.optional(),
  open: z
    .enum(["true", "false"])
    .transform((word) => word === "true")
    .optional(),
  limit,
  cursor: z.string().max(200).optional(),
});
export const sessionsQuerySchema = z.strictObject({
  agent_name: shortText.optional(),
  limit,
  cursor: z.string().max(200).optional(),
});

/** Nothing given means every run that has not ended: it has to be said in so many words. */
export const stopRunsSchema = z
  .strictObject({
    ...runFilterShape,
    status: z.array(z.enum(runStatuses)).min(1).optional(),
    all: z.literal(true).optional(),
  })
  .refine((filter) => Object.keys(filter).length > 0, {
    message: "give a filter, or all: true for every run that has not ended",
  });
export const stoppedSchema = z.object({
  cancelled: z.array(z.string()),
  stopping: z.array(z.string()),
  untouched: z.array(z.string()),
});

export const storedEventSchema = z.object({
  run_id: z.string(),
  seq: z.number().int(),
  attempt: z.number().int(),
  n: z.number().int().nullable(),
  at: z.string(),
  cursor: z.number().int(),
  event: runEventSchema,
});

export const whySchema = z.object({
  status: z.enum(runStatuses),
  why: z.array(z.object({ demand: z.string(), detail: z.string() })),
});

/** An agent's own fields, and where it comes from. */
export const listedAgentSchema = agentSchema.extend({
  source: z.enum(["file", "api", "runner"]),
  runner_id: z.string().nullable(),
});

export const runnerSchema = z.object({
  runner_id: z.string(),
  owner: z.string(),
  name: z.string().nullable(),
  hostname: z.string(),
  project_dir: z.string(),
  executor_profile: z.string(),
  executor: z.object({
    type: z.string(),
    command: z.string().optional(),
    module: z.string().optional(),
    config: z.record(z.string(), z.unknown()),
  }),
  tags: z.array(z.string()),
  require_matching_tags: z.boolean(),
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

/** A session and its runs, newest first. */
export const sessionWithRunsSchema = sessionSchema.extend({ versions: z.array(sessionVersionSchema) });

export const bindSchema = z.strictObject({ executor_session_id: z.string().min(1).max(400) });
export const executionSchema = z.object({
  run_id: z.string(),
  attempt: z.number().int(),
  start: executionStartSchema,
  end: executionEndSchema.nullable(),
});

/** What is shown in lists and stands in the records of whatever its bearer does. */
const shown = z
  .string()
  .max(200)
  .refine((text) => !/\p{C}/u.test(text), { message: "has a character that cannot be shown" });
export const newTokenSchema = z.strictObject({
  role: z.enum(tokenRoles),
  subject: shown.min(1).refine((text) => text.trim() === text, { message: "begins or ends with a space" }),
  label: shown.optional(),
  expires_at: time.optional(),
  /** For role `runner`: a token that a runner exchanges once for its own. */
  enrolment: z.boolean().default(false),
});
export const tokenSchema = z.object({
  token_id: z.string(),
  kind: z.enum(["access", "enrolment"]),
  role: z.enum(tokenRoles),
  subject: z.string(),
  label: z.string().nullable(),
  created_by: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
  used_at: z.string().nullable(),
});
/** Only these two answers ever carry a token itself. */
export const madeTokenSchema = tokenSchema.extend({ token: z.string() });
export const rotatedTokenSchema = madeTokenSchema.extend({
  /** The token it takes the place of, when that one ends, and whether it is the one that this was asked with. */
  replaces: z.object({ token_id: z.string(), ends_at: z.string(), asked_with: z.boolean() }),
});
export const revokeTokensSchema = z.strictObject({ subject: z.string().min(1).max(200) });
export const revokedTokensSchema = z.object({ revoked: z.array(z.string()) });
export const rotateTokenSchema = z.strictObject({
  /** How long the old one is still good; 0: not a moment. */
  overlap_seconds: z.number().int().min(0).max(604_800).default(300),
});

export const healthSchema = z.object({ status: z.literal("ok"), version: z.string(), protocol: z.literal(1) });

export { agentSchema, runSchema, sessionSchema, storedFileSchema };
