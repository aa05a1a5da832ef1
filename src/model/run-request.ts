import * as z from "zod";
import { demandsSchema, runModes, triggerTypes } from "./demands.ts";
import type { CreateRun } from "./store.ts";
import { webhookNamesSchema } from "./webhook.ts";

const id = z.string().min(1).max(200);

/** What is asked for by whoever wants a run. Unknown keys are errors. */
export const runRequestSchema = z.strictObject({
  agent_name: z.string().min(1).max(400),
  parameters: z.record(z.string(), z.unknown()).default({}),
  prompt: z.string().max(1_000_000).optional(),
  /** Instead of the agent's. A session that is continued goes on with it. */
  model: z.string().min(1).max(200).optional(),
  mode: z.enum(runModes).default("start"),
  /** The session to resume or fork. */
  session_id: id.optional(),
  /** Of a fork: how many turns of the session it keeps, from its beginning; all of them unless given. */
  fork_at_turn: z.int().min(1).max(1_000_000).optional(),
  project_dir: z.string().min(1).max(4096).optional(),
  demands: z.strictObject(demandsSchema.shape).optional(),
  priority: z.number().int().min(-1000).max(1000).default(0),
  /** Whether its questions go to people; what its agent says where it is left out. */
  attended: z.boolean().optional(),
  timeout_seconds: z.number().positive().max(2_592_000).optional(),
  trigger_type: z.enum(triggerTypes).default("api"),
  /** The name of the schedule that began it. */
  schedule: id.optional(),
  /** Webhooks with scope `named` that are notified of this run, beside those of its agent. */
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
  /** From the Idempotency-Key header: the same key and request again is the same run. */
  idempotency_key?: string;
  /** Of a schedule: holds the parameters and prompt in place of these, which are redacted. */
  sealed?: string;
  /** Of a hook's delivery or a chain: what is settled with the run. */
  settles?: NonNullable<CreateRun["settles"]>;
};
