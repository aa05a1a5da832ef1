import * as z from "zod";
import { environmentModes, isolationLevels } from "./process.ts";

/** Ids that the caller may attach to a run. Drover itself assigns `run_id` and `parent_run_id`. */
export const correlationSchema = z.object({
  session_id: z.string().nullable(),
  task_id: z.string().nullable(),
  step_id: z.string().nullable(),
  tool_call_id: z.string().nullable(),
  worktree_id: z.string().nullable(),
  repo_sha: z.string().nullable(),
});
export type Correlation = z.infer<typeof correlationSchema>;

/** Set if a command inside the run reported this execution. Drover did not observe it. */
const reportedBy = z.literal("command").optional();

/** The start of an execution. It is durable before the process is spawned. */
export const executionStartSchema = z.object({
  execution_id: z.string(),
  /** The command line as typed in a shell, redacted. */
  command: z.string(),
  argv: z.array(z.string()),
  working_directory: z.string(),
  started_at: z.string(),
  timeout_ms: z.number().nullable(),
  /** The limits in force, named as in agent files. Missing in records of older versions, like `environment`. */
  limits: z.record(z.string(), z.number()).optional(),
  /** Names of variables, never values: those the command received, and those withheld from it. */
  environment: z
    .object({ mode: z.enum(environmentModes), given: z.array(z.string()), withheld: z.array(z.string()) })
    .optional(),
  /** The Drover process that spawned the command. A later sweep uses it to detect that this process died. */
  owner: z.object({ pid: z.number(), start: z.string(), host: z.string() }),
  correlation: correlationSchema,
  reported_by: reportedBy,
  /** `command` and `argv` exceeded the size limit of an event and were truncated. */
  truncated: z.literal(true).optional(),
});
export type ExecutionStart = z.infer<typeof executionStartSchema>;

/** The end of an execution. It is written after the process and all its descendants have exited. */
export const executionEndSchema = z.object({
  execution_id: z.string(),
  exit_code: z.number().nullable(),
  signal: z.string().nullable(),
  stopped: z.string().nullable(),
  success: z.boolean(),
  timed_out: z.boolean(),
  /** True if the Drover process that started the command died or lost its lease, and nobody observed the end. */
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
