import * as z from "zod";
import { demandsSchema, runModes, triggerTypes } from "./demands.ts";
import { usageSchema } from "./event.ts";
import { correlationSchema } from "./execution.ts";
import { parkReasons } from "./executor.ts";
import { isolationLevels } from "./process.ts";
import { failureReasons, runStatuses } from "./states.ts";

export type { Demands } from "./demands.ts";

/** A run with all its fields. Listings omit parameters, prompt and results. */
export const runSchema = correlationSchema.extend({
  run_id: z.string(),
  agent_name: z.string(),
  created_by: z.string(),
  mode: z.enum(runModes),
  status: z.enum(runStatuses),
  reason: z.enum(failureReasons).nullable(),
  error: z.string().nullable(),
  waiting_for: z.string().nullable(),
  /** For a parked run: what it waits for, and when it resumes automatically (null: only when a person resumes it). */
  parked_why: z.enum(parkReasons).nullable(),
  parked_until: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()),
  prompt: z.string().nullable(),
  attended: z.boolean(),
  forked_from: z.string().nullable(),
  /** How many turns of that session the fork keeps, counted from its start. null: all. */
  fork_at_turn: z.number().int().nullable(),
  parent_run_id: z.string().nullable(),
  retry_of: z.string().nullable(),
  trigger_type: z.enum(triggerTypes),
  schedule: z.string().nullable(),
  project_dir: z.string().nullable(),
  /** The model that the request asked for. null: the agent's own. */
  model: z.string().nullable(),
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
