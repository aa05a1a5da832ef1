import { z } from "zod";
import { usageSchema } from "./event.ts";
import { correlationSchema } from "./execution.ts";
import { isolationLevels } from "./process.ts";
import { failureReasons, runStatuses } from "./states.ts";

export const runModes = ["start", "resume", "fork"] as const;
export const triggerTypes = ["manual", "api", "schedule", "webhook", "chat", "fork", "agent"] as const;

export const demandsSchema = z.object({
  hostname: z.string().optional(),
  project_dir: z.string().optional(),
  executor_profile: z.string().optional(),
  executor_type: z.string().optional(),
  runner_id: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
export type Demands = z.infer<typeof demandsSchema>;

/** One request to run an agent, whole. Lists leave out parameters, prompt and results. */
export const runSchema = correlationSchema.extend({
  run_id: z.string(),
  agent_name: z.string(),
  created_by: z.string(),
  mode: z.enum(runModes),
  status: z.enum(runStatuses),
  reason: z.enum(failureReasons).nullable(),
  error: z.string().nullable(),
  waiting_for: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()),
  prompt: z.string().nullable(),
  attended: z.boolean(),
  forked_from: z.string().nullable(),
  parent_run_id: z.string().nullable(),
  retry_of: z.string().nullable(),
  trigger_type: z.enum(triggerTypes),
  schedule: z.string().nullable(),
  project_dir: z.string().nullable(),
  demands: demandsSchema,
  priority: z.number().int(),
  attempt: z.number().int(),
  failures: z.number().int(),
  runner_id: z.string().nullable(),
  progress: z.number().nullable(),
  exit_code: z.number().nullable(),
  result_text: z.string().nullable(),
  result_data: z.unknown(),
  summary: z.string().nullable(),
  usage: usageSchema.nullable(),
  isolation: z.enum(isolationLevels).nullable(),
  created_at: z.string(),
  claimed_at: z.string().nullable(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
});
export type Run = z.infer<typeof runSchema>;
