import * as z from "zod";
import { templateSchema, valueSourcesSchema } from "./value-sources.ts";

const chainOutcomes = ["completed", "failed", "always"] as const;

/**
 * The run that follows. Its values come from the run that ended: `status, reason, error, exit_code, result_text,
 * result_data, summary, parameters, prompt, run_id, agent_name, session_id`.
 */
const chainSchema = z.strictObject({
  agent: z.string().min(1).max(400),
  parameters: valueSourcesSchema.optional(),
  prompt: templateSchema.optional(),
  /** Of the run that ended; `always` follows a cancelled one too. */
  when: z.enum(chainOutcomes).default("completed"),
});

/** A command that the runner starts before the result, or a run that the coordinator submits with the end. */
export const onFinishSchema = z.union([z.string(), chainSchema]);
