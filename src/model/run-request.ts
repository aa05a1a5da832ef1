import * as z from "zod";
import { newDemandsSchema, runModes, triggerTypes } from "./demands.ts";
import type { CreateRun } from "./store.ts";
import { webhookNamesSchema } from "./webhook.ts";

const id = z.string().min(1).max(200);

/** A request to start a run. Unknown keys are errors. */
export const runRequestSchema = z.strictObject({
  agent_name: z.string().min(1).max(400),
  parameters: z.record(z.string(), z.unknown()).default({}),
  prompt: z.string().max(1_000_000).optional(),
  /** Overrides the agent's model, even when continuing a session. */
  model: z.string().min(1).max(200).optional(),
  mode: z.enum(runModes).default("start"),
  /** The session to resume or fork. */
  session_id: id.optional(),
  /** For a fork: how many turns to keep, counted from the start of the session. Defaults to all. */
  fork_at_turn: z.int().min(1).max(1_000_000).optional(),
  project_dir: z.string().min(1).max(4096).optional(),
  demands: newDemandsSchema.optional(),
  priority: z.number().int().min(-1000).max(1000).default(0),
  /** Whether questions go to people. Defaults to the agent's setting. */
  attended: z.boolean().optional(),
  timeout_seconds: z.number().positive().max(2_592_000).optional(),
  trigger_type: z.enum(triggerTypes).default("api"),
  /** The name of the schedule that started the run. */
  schedule: id.optional(),
  /** Webhooks with scope `named` to notify about this run, in addition to those of its agent. */
  webhooks: webhookNamesSchema.optional(),
  parent_run_id: id.optional(),
  retry_of: id.optional(),
  task_id: id.optional(),
  step_id: id.optional(),
  tool_call_id: id.optional(),
  worktree_id: id.optional(),
  repo_sha: id.optional(),
});

export type RunRequest = z.output<typeof runRequestSchema> & {
  /** From the Idempotency-Key header. Repeating the key and the request returns the same run. */
  idempotency_key?: string;
  /** For schedules: the original parameters and prompt, encrypted, if the ones in this request are redacted. */
  sealed?: string;
  /** For hook deliveries and chains: the trigger that this run settles. */
  settles?: NonNullable<CreateRun["settles"]>;
};
