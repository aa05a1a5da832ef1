import * as z from "zod";
import { environmentModes, isolationLevels } from "./process.ts";

/** Who asked, in the caller's own words. All optional; `run_id` and `parent_run_id` are Drover's. */
export const correlationSchema = z.object({
  session_id: z.string().nullable(),
  task_id: z.string().nullable(),
  step_id: z.string().nullable(),
  tool_call_id: z.string().nullable(),
  worktree_id: z.string().nullable(),
  repo_sha: z.string().nullable(),
});
export type Correlation = z.infer<typeof correlationSchema>;

/** Of an execution inside a run that Drover has from the run's own commands: it is their word. */
const reportedBy = z.literal("command").optional();

/** Written and durable before the process is spawned. */
export const executionStartSchema = z.object({
  execution_id: z.string(),
  /** As a person would type it, redacted. */
  command: z.string(),
  argv: z.array(z.string()),
  working_directory: z.string(),
  started_at: z.string(),
  timeout_ms: z.number().nullable(),
  /** In force for it, by the names agent files use. Missing in records of older versions, as is `environment`. */
  limits: z.record(z.string(), z.number()).optional(),
  /** Names of variables, never values: those given to the command, and those of Drover's own kept from it. */
  environment: z
    .object({ mode: z.enum(environmentModes), given: z.array(z.string()), withheld: z.array(z.string()) })
    .optional(),
  /** Of the Drover process that spawns: how a later sweep tells that it died. */
  owner: z.object({ pid: z.number(), start: z.string(), host: z.string() }),
  correlation: correlationSchema,
  reported_by: reportedBy,
  /** Only the beginning of `command` and `argv` is here: they were longer than an event may be. */
  truncated: z.literal(true).optional(),
});
export type ExecutionStart = z.infer<typeof executionStartSchema>;

/** Written after the process and all it started are gone. */
export const executionEndSchema = z.object({
  execution_id: z.string(),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
  stopped: z.string().nullable(),
  success: z.boolean(),
  timed_out: z.boolean(),
  /** True where this was written in place of a Drover that died, or was lost: its end was not seen. */
  interrupted: z.boolean(),
  ended_at: z.string(),
  duration_ms: z.number().nullable(),
  isolation: z.enum(isolationLevels).nullable(),
  leftovers: z.number(),
  resources: z.object({ user_ms: z.number(), system_ms: z.number(), max_rss_kb: z.number() }).nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  stdout_bytes: z.number(),
  stderr_bytes: z.number(),
  truncated: z.boolean(),
  reported_by: reportedBy,
});
export type ExecutionEnd = z.infer<typeof executionEndSchema>;
