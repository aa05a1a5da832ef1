import * as z from "zod";
import { templateSchema, valueSourcesSchema } from "./value-sources.ts";

const chainOutcomes = ["completed", "failed", "always"] as const;

/**
 * The run to start after this one. Its values can refer to these fields of the finished run: `status, reason, error,
 * exit_code, result_text, result_data, summary, parameters, prompt, run_id, agent_name, session_id`.
 */
const chainSchema = z.strictObject({
  agent: z.string().min(1).max(400),
  parameters: valueSourcesSchema.optional(),
  prompt: templateSchema.optional(),
  /** The required status of the finished run. `always` includes cancelled runs. */
  when: z.enum(chainOutcomes).default("completed"),
});

/** A command that the runner executes before it reports the result, or a run that the coordinator starts at the end. */
export const onFinishSchema = z.union([z.string(), chainSchema]);
